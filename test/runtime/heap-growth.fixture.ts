/**
 * Keeps a hundred MB, allocates batches of objects that are kept for a while, and prints the most bytes that were in use. With the argument `limited` the growth
 * of the heap is limited.
 */
import { setTimeout as wait } from 'node:timers/promises';
import { limitHeapGrowth } from '../../broker/runtime/collect-garbage.ts';

if (process.argv[2] === 'limited') limitHeapGrowth();

const batch = (size: number) => Array.from({ length: size }, (_, at) => ({ at, text: `text ${at}` }));
const kept = batch(800_000);
const recent: object[][] = [];
let most = 0;
for (let batches = 0; batches < 2_000; batches++) {
  recent.push(batch(10_000));
  if (recent.length > 60) recent.shift();
  most = Math.max(most, process.memoryUsage().heapUsed);
  await wait(0);
}
process.stdout.write(String(kept.length > 0 ? most : 0));
