import { describe, expect, test } from 'vitest';
import { unixMs } from '../../../core/domain/time.ts';
import { createLookupBudget } from './lookup-budget.ts';

/** Each link asks from its own network, unless `client` names one. */
function started(perMinute?: number) {
  let ms = 1_800_000_000_000;
  const budget = createLookupBudget(() => unixMs(ms), perMinute);
  return {
    take: (link: string, network: 'mainnet' | 'nile' = 'mainnet', client = link) => budget.take(network, link, client),
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

  test('one client that asks through new links without end leaves answers to others, and to newcomers', () => {
    const { take, pass } = started();
    const refused: number[] = [];
    for (let second = 0; second < 3600; second += 5) {
      pass(5);
      for (let link = 0; link < 10; link++) take(`greedy ${second} ${link}`, 'mainnet', 'greedy');
      // Two a minute that keep asking, and one newcomer every two minutes.
      if (second % 60 === 0 && !take(`other ${second}`, 'mainnet', 'other')) refused.push(second);
      if (second % 120 === 0 && !take(`new ${second}`)) refused.push(second);
    }
    expect(refused).toEqual([]);
  });

  test.each([1, 6, 60])('with %i a minute that many are granted, and five minutes of it at once', (perMinute) => {
    const { take, pass } = started(perMinute);
    let granted = 0;
    const takeAll = () => {
      while (take(`link ${granted}`)) granted++;
    };
    takeAll();
    expect(Math.abs(granted - perMinute * 5)).toBeLessThanOrEqual(1);
    const atOnce = granted;
    for (let minute = 0; minute < 60; minute++) {
      pass(60);
      takeAll();
    }
    expect(Math.abs(granted - atOnce - perMinute * 60)).toBeLessThanOrEqual(2);
  });

  test('networks do not share', () => {
    const { take } = started();
    for (let index = 0; index < 40; index++) take(`link ${index}`);
    expect(take('another')).toBe(false);
    expect(take('another of nile', 'nile')).toBe(true);
  });
});
