import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { importDiagram } from './import-diagram.ts';

test('the import diagram in docs/contributing/architecture.md is the generated one (npm run diagram)', async () => {
  const page = await readFile(new URL('../../docs/contributing/architecture.md', import.meta.url), 'utf8');
  const shown = /```mermaid\n([\s\S]*?)\n```/.exec(page)?.[1];
  expect(shown).toBe(importDiagram());
});
