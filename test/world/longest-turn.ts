/** Measures how long work blocks the event loop, in processor time: other processes on the machine do not count. */
import { randomInt } from 'node:crypto';

/** Returns the longest turn of the event loop while `work` runs, in milliseconds of this thread's processor time. */
export async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let before = process.threadCpuUsage();
  let watching = true;
  const look = () => {
    const { user, system } = process.threadCpuUsage(before);
    longest = Math.max(longest, (user + system) / 1000);
    before = process.threadCpuUsage();
    if (watching) setTimeout(look, 1);
  };
  look();
  await work();
  watching = false;
  look();
  return longest;
}

/**
 * Returns the milliseconds of processor time that this machine needs to write and read these texts as JSON five times: for 5,000 public keys 25 on a
 * fast machine, 70 on a slow one. A limit in milliseconds would test the machine.
 */
export function machineMs(texts: readonly string[]): number {
  const rounds = Array.from({ length: 5 }, () => {
    const before = process.threadCpuUsage();
    for (let i = 0; i < 5; i++) JSON.parse(JSON.stringify(texts.map((text, at) => ({ at, text, scopes: ['a', 'b'] }))));
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  });
  return rounds.sort((a, b) => a - b)[2] ?? 0;
}

/** Returns the milliseconds of processor time that this machine needs now to parse a JSON object with so many names, all of them new. */
export function parsingMs(count: number): number {
  const first = randomInt(2 ** 40);
  const text = `{${Array.from({ length: count }, (_, i) => `"${(first + i).toString(36)}":0`).join(',')}}`;
  const before = process.threadCpuUsage();
  JSON.parse(text);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
