import { keepsPromises, worlds } from './promises.ts';

keepsPromises(worlds(25, 25));
