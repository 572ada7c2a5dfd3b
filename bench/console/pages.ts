/** `url`: the console's origin. `api`: the API's, of the same process. */
export type Pages = { url: string; api: string; cookie: string };

/** Milliseconds that a page took, the longest that the API took meanwhile to say that it lives, and the size of the page as it is sent. */
export type Look = {
  name: string;
  first: number;
  p50: number;
  p95: number;
  max: number;
  stall: number;
  bytes: number;
};

/** What every page of somebody who is signed in costs: the session and the projects, and a form. */
export const BARE = 'New invoice';

/** It looks through all that a search may, and is not found. */
export const NOWHERE = 'Find what is nowhere';

/** In one of so many turns the API is asked meanwhile, which slows the page itself down: these times do not count. */
const WATCHED_TURN = 5;

/** Looks at each page in turn, one at a time, so that what disturbs the machine meets all alike. */
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

/** The longest of the API's answers, asked one after another, in milliseconds: as long its event loop stood still at least. */
async function watchLife(api: string, isDone: () => boolean): Promise<number> {
  let longest = 0;
  while (!isDone()) {
    const startedMs = performance.now();
    await (await fetch(`${api}/healthz`)).arrayBuffer();
    longest = Math.max(longest, performance.now() - startedMs);
  }
  return longest;
}
