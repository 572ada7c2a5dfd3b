import { inject } from 'vitest';
import { keepsPromises, worlds } from './promises.ts';
import { readSeeds } from './seeds.ts';

// The longest take as much of the processor as all others together.
const seeds = readSeeds().filter(({ minutes }) => inject('everyCase') || minutes <= 15);

keepsPromises([...seeds, ...worlds(0)]);
