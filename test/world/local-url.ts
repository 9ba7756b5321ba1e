import { readFileSync } from 'node:fs';
import { runFile } from '../../broker/process/run-file.ts';
import type { World } from './world.ts';

/** Returns the address at which a broker with another BASE_URL listens. */
export const localUrlOf = ({ running: { broker } }: World): string =>
  JSON.parse(readFileSync(runFile(broker.config.dataFolder), 'utf8')).url;
