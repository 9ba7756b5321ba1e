/** Serves a broker by the environment. */
import { readConfig } from '../broker/config.ts';
import { serve } from '../broker/main.ts';

const running = await serve(readConfig(process.env));
process.on('SIGTERM', () => void running.stop().then(() => process.exit(0)));
