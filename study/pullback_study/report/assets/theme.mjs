// Light, dark, or what the reader's system says; the choice is remembered where that is allowed.

export function setUpTheme() {
  const [names, button] = [["automatic", "light", "dark"], document.getElementById("theme")];
  const remember = (name) => {
    try {
      if (name) localStorage.setItem("pullback-theme", name);
      return localStorage.getItem("pullback-theme");
    } catch {
      return name;
    }
  };
  const apply = (name) => {
    document.documentElement.dataset.theme = name;
    button.textContent = `Theme: ${name}`;
  };
  let current = names.includes(remember()) ? remember() : "automatic";
  apply(current);
  button.addEventListener("click", () => {
    current = names[(names.indexOf(current) + 1) % names.length];
    remember(current);
    apply(current);
  });
}
