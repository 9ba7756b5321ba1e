import { vi } from 'vitest';
import { mintOwnerSession } from '../../broker/auth/owner-session.ts';
import { scaledTimeout } from '../world/test-timeouts.ts';
import type { Organisation, World } from '../world/world.ts';

/** Returns the text of a path, read as an owner. */
export async function readAsOwner(world: World, { owner }: Organisation, path: string): Promise<string> {
  const headers = { authorization: `Bearer ${mintOwnerSession(world.running.broker, owner).token}` };
  return await (await fetch(`${world.running.baseUrl}${path}`, { headers })).text();
}

/** Waits until a checkpoint covers all rows, at least so many, and returns their number. A log is signed every 5 s. */
export const settledLog = (organisation: Organisation, atLeast: number): Promise<number> =>
  vi.waitUntil(
    async () => {
      const { size, waiting, checkpoint } = (await organisation.ask('GET', '/owner/log')).body;
      return waiting === 0 && size >= atLeast && checkpoint?.size === size ? (size as number) : undefined;
    },
    { timeout: scaledTimeout(30_000), interval: 250 },
  );
