import { hours, keepsPromises } from './promises.ts';

keepsPromises(hours(40, 10));
