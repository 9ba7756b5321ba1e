import type { OwnerTable } from '../../broker/store/tables/organisations.ts';
import type { Answer } from '../world/agent.ts';
import { registerBegin, registerFinish } from '../world/passkeys.ts';
import { Authenticator } from '../world/software-authenticator.ts';
import type { Organisation, World } from '../world/world.ts';

/** The steps of an owner's enrolment. `own`: the passkeys that an owner has. */
export const enrolling = (world: World, organisation: Organisation) => ({
  made: (options: { algorithm?: 'ES256' | 'RS256' | 'Ed25519'; synced?: boolean } = {}) =>
    new Authenticator(world.running.baseUrl, options),
  own: async (by?: OwnerTable) =>
    (await organisation.ask('GET', '/owner/passkeys', undefined, by)).body.passkeys as Record<string, unknown>[],
  begin: async () => (await registerBegin(organisation)).body,
  finish: (response: unknown, name = 'Phone', by?: OwnerTable): Promise<Answer> =>
    registerFinish(organisation, { response, device_name: name }, by),
});
