// A page that was served asks its server for newer data every few seconds.
// `live` is {tag: of the data at hand, every: seconds}.

export function watch(live, update, say) {
  let failed = false;
  let { tag } = live;
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
    setTimeout(ask, 1000 * live.every);
  };
  say("Live: refreshes as runs progress.");
  setTimeout(ask, 1000 * live.every);
}
