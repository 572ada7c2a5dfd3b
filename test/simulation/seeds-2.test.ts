import { hours, keepsPromises } from './promises.ts';

keepsPromises(hours(10, 10));
