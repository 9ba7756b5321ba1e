import { readFileSync } from 'node:fs';
import { runFile } from '../../broker/process/run-file.ts';
import type { World } from './world.ts';

/** Where a broker listens whose BASE_URL is another. */
export const localUrlOf = ({ running: { broker } }: World): string =>
  JSON.parse(readFileSync(runFile(broker.config.dataFolder), 'utf8')).url;
