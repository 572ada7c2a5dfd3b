import { expect, test } from 'vitest';
import { decodeIds, encodeIds } from './list-rows.ts';

const [FIRST, SECOND] = ['01890a5d-ac96-774b-bcce-b302099a8057', '01890a5d-ac96-774b-bcce-b302099a8100'];

test('a page gives the ids back that were put on it, in their order', () => {
  expect(encodeIds([FIRST, SECOND])).toHaveLength(32);
  expect(decodeIds(encodeIds([FIRST, SECOND]))).toEqual([FIRST, SECOND]);
  expect(decodeIds(encodeIds([]))).toEqual([]);
});
