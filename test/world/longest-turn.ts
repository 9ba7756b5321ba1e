/** How long work keeps everybody else waiting, in processor time: other processes on the machine count for nothing. */
import { randomInt } from 'node:crypto';

/** The longest turn of the event loop while something runs, in milliseconds of this thread's processor time. */
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
 * What this machine needs, in milliseconds of processor time, to write and read these texts as JSON five times: of 5,000 public keys 25 on
 * a fast machine, 70 on a slow one. A limit in milliseconds would test the machine.
 */
export function machineMs(texts: readonly string[]): number {
  const rounds = Array.from({ length: 9 }, () => {
    const before = process.threadCpuUsage();
    for (let i = 0; i < 5; i++) JSON.parse(JSON.stringify(texts.map((text, at) => ({ at, text, scopes: ['a', 'b'] }))));
    const { user, system } = process.threadCpuUsage(before);
    return (user + system) / 1000;
  });
  return rounds.sort((a, b) => a - b)[4] ?? 0;
}

/** What this machine needs now, in milliseconds of processor time, to read an object of so many names as JSON, none of which it has read before. */
export function parsingMs(count: number): number {
  const first = randomInt(2 ** 40);
  const text = `{${Array.from({ length: count }, (_, i) => `"${(first + i).toString(36)}":0`).join(',')}}`;
  const before = process.threadCpuUsage();
  JSON.parse(text);
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1000;
}
