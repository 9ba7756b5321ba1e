/**
 * Allocates 300 batches of short-lived objects and prints the largest capacity, in bytes, of V8's new space. With the argument `limited`
 * its growth is limited.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { limitYoungGeneration, youngGenerationCapacity } from '../../broker/runtime/collect-garbage.ts';

if (process.argv[2] === 'limited') limitYoungGeneration();

const kept: object[][] = [];
let most = 0;
for (let batches = 0; batches < 300; batches++) {
  kept.push(Array.from({ length: 20_000 }, (_, at) => ({ at, text: `text ${at}` })));
  if (kept.length > 20) kept.shift();
  most = Math.max(most, youngGenerationCapacity());
  // Collections are reported between two turns of the event loop.
  await wait(0);
}
process.stdout.write(String(most));
