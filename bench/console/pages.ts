/** `url`: the console's origin. */
export type Pages = { url: string; cookie: string };

/** Milliseconds that a page took, and its size as it is sent. */
export type Look = { name: string; first: number; p50: number; p95: number; bytes: number };

/** What every page of somebody who is signed in costs: the session and the projects, and a form. */
export const BARE = 'New invoice';

/** Looks at each page in turn, one at a time, so that what disturbs the machine meets all alike. */
export async function timePages(pages: Pages, samples: Record<string, string>, looks: number): Promise<Look[]> {
  const taken = new Map(Object.keys(samples).map((name) => [name, { ms: [] as number[], bytes: 0 }]));
  for (let turn = 0; turn <= looks; turn += 1) {
    for (const [name, path] of Object.entries(samples)) {
      const startedMs = performance.now();
      const answer = await fetch(pages.url + path, {
        headers: { cookie: pages.cookie, 'accept-encoding': 'gzip' },
        redirect: 'follow',
      });
      const body = await answer.text();
      if (!answer.ok || !body.includes('Sign out')) throw new Error(`${name} answered ${answer.status}`);
      const page = taken.get(name);
      page?.ms.push(performance.now() - startedMs);
      if (page !== undefined) page.bytes = Number(answer.headers.get('content-length') ?? Buffer.byteLength(body));
    }
  }
  return [...taken].map(
    ([
      name,
      {
        ms: [first = 0, ...ms],
        bytes,
      },
    ]) => {
      const sorted = ms.toSorted((a, b) => a - b);
      const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
      return { name, first, p50: at(0.5), p95: at(0.95), bytes };
    },
  );
}
