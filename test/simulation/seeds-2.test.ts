import { keepsPromises, worlds } from './promises.ts';

keepsPromises(worlds(1));
