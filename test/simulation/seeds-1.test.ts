import { hours, keepsPromises } from './promises.ts';
import { readSeeds } from './seeds.ts';

keepsPromises([...readSeeds(), ...hours(0, 25)]);
