/**
 * A broker as a separate process, for tests that kill it. It loads immediately but serves only after a line on stdin, so that the next one is ready
 * when the last is killed; it prints its address when it serves.
 */
import { once } from 'node:events';
import { flushCompileCache } from 'node:module';
import { readConfig } from '../../broker/environment/config.ts';
import { serve } from '../../broker/process/main.ts';
import { plantFailpoints } from './failpoints.ts';

const config = readConfig(process.env);
delete process.env.AGENT_BROKER_MASTER_KEY;
delete process.env.AGENT_BROKER_MASTER_KEY_PREVIOUS;
const beatMs = Number(process.env.TEST_BEAT_MS) || undefined;
const choresMs = Number(process.env.TEST_CHORES_MS) || undefined;
const drainMs = 1000 * (config.drainSeconds ?? 0);
const acceptClock = process.env.TEST_ACCEPT_CLOCK !== undefined;

// Exits when the test process is gone.
process.stdin.on('end', () => process.exit(1));
process.stdout.write('loaded\n');
await once(process.stdin, 'data');
try {
  const running = await serve(config, {
    acceptClock,
    drainMs,
    ...(beatMs && { beatMs }),
    ...(choresMs && { choresMs }),
  });
  if (process.env.TEST_FAILPOINTS !== undefined) plantFailpoints(running.services.recorder, running.broker.instanceId);
  const stop = () => void running.stop().then(() => process.exit(0));
  process.on('SIGTERM', stop);
  process.on('SIGINT', stop);
  // Writes the compile cache for the next process; a killed process would never write it.
  flushCompileCache();
  // Must come last: the reader may send a signal immediately.
  process.stdout.write(`serving ${running.baseUrl}\n`);
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exit(1);
}
