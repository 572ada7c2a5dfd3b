/** `url` is the console's origin, and `api` is the API's origin in the same process. */
export type Pages = { url: string; api: string; cookie: string };

/**
 * The milliseconds that a page took, the longest time that the API needed for a health check meanwhile, and the size of the page as sent.
 */
export type Look = {
  name: string;
  first: number;
  p50: number;
  p95: number;
  max: number;
  stall: number;
  bytes: number;
};

/** The minimum cost of any page for a signed-in person: the session, the projects, and a form. */
export const BARE = 'New invoice';

/** Searches everything that a search may cover, and finds nothing. */
export const NOWHERE = 'Find what is nowhere';

/** In one turn out of this many, the API is queried at the same time. That slows the page down, so the times of these turns don't count. */
const WATCHED_TURN = 5;

/** Requests each page in turn, one at a time, so that disturbances of the machine affect all pages alike. */
export async function timePages(pages: Pages, samples: Record<string, string>, looks: number): Promise<Look[]> {
  const taken = new Map(Object.keys(samples).map((name) => [name, { ms: [] as number[], stall: 0, bytes: 0 }]));
  for (let turn = 0; turn <= looks; turn += 1) {
    for (const [name, path] of Object.entries(samples)) {
      const startedMs = performance.now();
      let isDone = turn % WATCHED_TURN !== 1;
      const watch = watchLife(pages.api, () => isDone);
      const answer = await fetch(pages.url + path, {
        headers: { cookie: pages.cookie, 'accept-encoding': 'gzip' },
        redirect: 'follow',
      });
      const body = await answer.text();
      if (answer.ok !== (name !== NOWHERE) || !body.includes('Sign out'))
        throw new Error(`${name} answered ${answer.status}`);
      const page = taken.get(name);
      if (page === undefined) continue;
      if (isDone) page.ms.push(performance.now() - startedMs);
      page.bytes = Number(answer.headers.get('content-length') ?? Buffer.byteLength(body));
      isDone = true;
      page.stall = Math.max(page.stall, await watch);
    }
  }
  return [...taken].map(
    ([
      name,
      {
        ms: [first = 0, ...ms],
        stall,
        bytes,
      },
    ]) => {
      const sorted = ms.toSorted((a, b) => a - b);
      const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
      return { name, first, p50: at(0.5), p95: at(0.95), max: at(1), stall, bytes };
    },
  );
}

/**
 * Returns the longest of the API's response times, one request after another, in milliseconds. Its event loop was blocked for at least that
 * long.
 */
async function watchLife(api: string, isDone: () => boolean): Promise<number> {
  let longest = 0;
  while (!isDone()) {
    const startedMs = performance.now();
    await (await fetch(`${api}/healthz`)).arrayBuffer();
    longest = Math.max(longest, performance.now() - startedMs);
  }
  return longest;
}
