import { hours, keepsPromises } from './promises.ts';

keepsPromises(hours(25, 25));
