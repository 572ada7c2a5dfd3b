import { hours, keepsPromises } from './promises.ts';

keepsPromises(hours(30, 10));
