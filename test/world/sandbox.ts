/** A broker as `serve` starts it on a new data folder: with the sandbox, its agent, and an organisation without any call. */

import { firstStart } from '../../broker/process/first-start.ts';
import { settleSandbox, startSandboxPlatform } from '../../broker/process/sandbox.ts';
import { listOwners } from '../../broker/store/organisations.ts';
import type { Sandbox } from '../../lab/sandbox.ts';
import { type Answer, send } from './agent.ts';
import { afterFile } from './runner/after-file.ts';
import type { StoreKind } from './stores.ts';
import { givenWorld, type Organisation, organisationOf, shared, type World } from './world.ts';

export type SandboxWorld = {
  world: World;
  organisation: Organisation;
  /** Sends a request to the platform itself, with its credential. */
  ask(path: string): Promise<Answer>;
};

/** A sandbox for the tests of this `describe`. */
export function givenSandbox(store?: StoreKind, environment?: Parameters<typeof givenWorld>[1]): SandboxWorld {
  let sandbox: (Sandbox & { token: string }) | undefined;
  let organisationId = '';
  const world = givenWorld(store, environment, {
    before: async (data) => {
      const started = await startSandboxPlatform(data);
      afterFile(() => started.close());
      sandbox = started;
      return {
        allowPrivate: [new URL(started.url).host],
        beforeServing: async (services) => {
          organisationId = await firstStart(services);
          await settleSandbox(services, organisationId, started);
        },
      };
    },
  });
  const organisation = shared(async () => {
    const [owner] = await listOwners(world.db, organisationId);
    return organisationOf(world, owner!);
  });
  return {
    world,
    organisation,
    ask: (path) => send(`${sandbox!.url}${path}`, { headers: { authorization: `Bearer ${sandbox!.token}` } }),
  };
}
