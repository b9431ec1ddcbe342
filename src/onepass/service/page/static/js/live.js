// Something asked for again and again: every second while the page is seen, rarely when it is not, and with growing
// pauses while the service is away.

const SEEN = 1000;
const UNSEEN = 15000;
const LONGEST = 30000;

/**
 * Call an asynchronous look until stop() of what is returned is called; now() looks at once.
 *
 * away(problem, seconds) is called when the service does not answer, and away(null) when it does again; a refusal that has
 * a meaning of its own goes to refused(problem), and the looks go on if that returns true.
 */
export function watch(look, { away, refused }) {
  let timer;
  let failures = 0;
  let current = 0; // number of the turn that counts; 0 when it is over

  async function turn() {
    clearTimeout(timer);
    current += 1;
    const own = current;
    let pause = document.hidden ? UNSEEN : SEEN;
    try {
      await look();
      if (own !== current) return;
      if (failures) away(null);
      failures = 0;
    } catch (problem) {
      if (own !== current) return;
      if (problem.status === undefined) throw problem; // a fault of this page
      const passes = problem.status === 0 || problem.status === 429 || (problem.status >= 500 && problem.status !== 503);
      if (!passes && !refused(problem)) return;
      if (passes) {
        failures += 1;
        pause = Math.min(SEEN * 2 ** failures, LONGEST);
        away(problem, Math.round(pause / 1000));
      }
    }
    timer = setTimeout(turn, pause);
  }

  const seen = () => {
    if (!document.hidden && current) turn();
  };
  document.addEventListener("visibilitychange", seen);
  turn();
  const stop = () => {
    current = 0;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", seen);
  };
  return { stop, now: turn };
}
