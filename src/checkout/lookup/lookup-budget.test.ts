import { describe, expect, test } from 'vitest';
import { unixMs } from '../../domain/time.ts';
import { createLookupBudget } from './lookup-budget.ts';

function started() {
  let ms = 1_800_000_000_000;
  const budget = createLookupBudget(() => unixMs(ms));
  return {
    take: (link: string, network: 'mainnet' | 'nile' = 'mainnet') => budget.take(network, link),
    pass: (seconds: number) => {
      ms += seconds * 1000;
    },
  };
}

describe('questions of payers to nodes are shared out', () => {
  test('one link asks ten at once and then one a minute', () => {
    const { take, pass } = started();
    const granted = () => Array.from({ length: 20 }, () => take('greedy')).filter(Boolean).length;
    expect(granted()).toBe(10);
    pass(59);
    expect(granted()).toBe(0);
    pass(1);
    expect(granted()).toBe(1);
  });

  test('a link that asks every five seconds leaves an answer to all others', () => {
    const { take, pass } = started();
    for (let second = 0; second < 300; second += 5) {
      take('greedy');
      pass(5);
    }
    const others = Array.from({ length: 30 }, (_, index) => {
      take('greedy');
      pass(5);
      take('greedy');
      pass(5);
      return take(`other ${index}`);
    });
    expect(others).toEqual(Array(30).fill(true));
  });

  test('ten links that ask without end leave an answer to one who comes each two minutes, for hours', () => {
    const { take, pass } = started();
    const refused: number[] = [];
    for (let second = 0; second < 4 * 3600; second += 5) {
      pass(5);
      for (let link = 0; link < 10; link++) take(`greedy ${link}`);
      if (second % 120 === 0 && !take(`other ${second}`)) refused.push(second);
    }
    expect(refused).toEqual([]);
  });

  test('all links of a network together take 17,340 requests on a day at most', () => {
    const { take, pass } = started();
    let requests = 0;
    for (let minute = 0; minute < 24 * 60; minute++) {
      for (let index = 0; index < 12; index++) if (take(`link ${minute} ${index}`)) requests += 2;
      pass(60);
    }
    expect(requests).toBeGreaterThan(17_000);
    expect(requests).toBeLessThanOrEqual(17_340);
  });

  test('networks do not share', () => {
    const { take } = started();
    for (let index = 0; index < 40; index++) take(`link ${index}`);
    expect(take('another')).toBe(false);
    expect(take('another of nile', 'nile')).toBe(true);
  });
});
