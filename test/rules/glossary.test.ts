import { readdirSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const SRC = fileURLToPath(new URL('../../src/', import.meta.url));
const PAGES = ['reference/glossary', 'contributing/words'].map(
  (page) => new URL(`../../docs/${page}.md`, import.meta.url),
);
const readGlossary = () => PAGES.map((page) => readFileSync(page, 'utf8')).join('\n');

/** Folders whose files are named after our own concepts, not after protocols and pages. */
const FOLDERS = ['core/domain', 'core/chain', 'core/payments', 'core/store', 'core/webhooks', 'faces/operator'];

/** English words, and terms that every programmer knows. Our own terms belong in the glossary instead. */
const PLAIN = new Set(
  `accept acknowledge action activate activity actor add address admin admit advise ahead amount answer any api apply ask assert at authenticate authorize auto backup balance behind
  binary block body buffer build by bytes caller canonical challenge change check choice cidr client clip close cluster code coin collect colour column command
  compare compose config confirm connect connection connector contact contract copy corpus count create creation csv damaged data database date db
  deadline delete describe difference digest directory disable document download draw duration edit embedded enable encode encryption entry error event expire
  explanation export facts failure field file filter find finish fit flight follow follower following forget format from gather gauge given grpc hash header
  health hint history hold http id identity import in index initialize input insert inspect invalid invite ip issue item join json judge keep key
  keygen kind label likely limit line link list listen load lock log login logo loopback mac make mark measure merge message migrate mistake money
  move name need never new next note now null number object objects of oklch on open option or order own page part password pasted pause payer paying payment
  period person pick plain plan pool postmaster price printable problem progress proof purge queries query question queue random range rank rate raw read
  reader real receive recognise reconcile record recorder recover reencrypt reference refusal refuse refused register reject remove rename report
  request require reset response restart restore resume retry return revoke rewritten role rotate rounding row rule run running runtime safety save
  scan schedule schema scratch search secret secure select send sender server service session set settings settle shape share show sign signature
  size sort source split spot stand standby start starting state statement status step stop store stream string subject sum summary switch system table template
  terms test text time to token total transaction transport turn type typing undelivered undo union unit unknown update upgrade url user value verdict
  verification verify version view visibility wait wakeup warning webhook whole why with word write`.split(/\s+/),
);

/** Returns the words in the first column of the glossary's tables. */
function glossaryWords(page: string): Set<string> {
  const terms = [...page.matchAll(/^\| ([^|]+) \|/gm)].map(([, term = '']) => term.toLowerCase());
  return new Set(terms.flatMap((term) => term.match(/[a-z]+/g) ?? []));
}

/** `addresses` may come from `addresse` or `address`, `deliveries` from `delivery`, `watching` from `watch`, `rescanned` from `rescan`. */
function formsOf(word: string): string[] {
  return [
    word,
    word.replace(/s$/, ''),
    word.replace(/es$/, ''),
    word.replace(/ie[sd]$/, 'y'),
    word.replace(/(?:ed|ing)$/, ''),
    word.replace(/(.)\1ed$/, '$1'),
  ];
}

function unexplained(names: readonly string[], known: ReadonlySet<string>): string[] {
  return names.filter((name) => {
    const words = basename(name).split('.')[0]?.split('-') ?? [];
    return !words.every((word) => formsOf(word).some((form) => PLAIN.has(form) || known.has(form)));
  });
}

const known = glossaryWords(readGlossary());

test('every word that a file is named after is plain English or is in the glossary', () => {
  const files = readdirSync(SRC, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && FOLDERS.some((folder) => name.startsWith(`${folder}/`)),
  );
  expect(files.length).toBeGreaterThan(150);
  expect(unexplained(files, known)).toEqual([]);
});

test('a file that is named after a word that nobody explained is found', () => {
  expect(unexplained(['domain/quorum.ts', 'domain/gloaming.ts', 'store/read-gloamings.test.ts'], known)).toEqual([
    'domain/gloaming.ts',
    'store/read-gloamings.test.ts',
  ]);
});

test('no word stands in the glossary twice', () => {
  const terms = [...readGlossary().matchAll(/^\| ([^|]+) \|/gm)].flatMap(([, term = '']) => term.split(', '));
  const ours = terms.filter((term) => term !== 'Word');
  expect(ours.filter((term, index) => ours.indexOf(term) !== index)).toEqual([]);
});
