import { keepsPromises, worlds } from './promises.ts';
import { readSeeds } from './seeds.ts';

keepsPromises([...readSeeds(), ...worlds(0)]);
