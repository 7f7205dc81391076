// A page that was served asks its server for newer data every few seconds.

const EVERY = 5000;

export function watch(firstTag, update, say) {
  let failed = false;
  let tag = firstTag;
  const ask = async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch("data.json", { cache: "no-store", headers: { "If-None-Match": tag } });
        if (answer.status === 200) {
          tag = answer.headers.get("ETag");
          update(await answer.json());
        } else if (answer.status !== 304) {
          throw new Error(`the server answered ${answer.status}`);
        }
        say(failed ? "Connected again." : "Live: refreshes as runs progress.");
        failed = false;
      } catch {
        failed = true;
        say("The server does not answer; this page shows the last state it had.");
      }
    }
    setTimeout(ask, EVERY);
  };
  say("Live: refreshes as runs progress.");
  setTimeout(ask, EVERY);
}
