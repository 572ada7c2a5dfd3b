import { hours, keepsPromises } from './promises.ts';

keepsPromises(hours(20, 10));
