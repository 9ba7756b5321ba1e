/** Who may decide a held call by passkey alone, from its link: the setting in the API, governance files and the store. */
import { z } from 'zod';

export const PasskeyDeciders = z
  .enum(['default', 'approvers', 'agents_owner'])
  .describe(
    "Who decides by passkey without being signed in: every approver and admin, or only the agent's owner; default: every approver and admin, but where owners sign in at an identity provider only the agent's owner.",
  );
export type PasskeyDeciders = z.output<typeof PasskeyDeciders>;

/** Resolves the setting. `elsewhere`: owners sign in at an identity provider, where an account may have been disabled. */
export const passkeyDecidersIn = (setting: PasskeyDeciders, elsewhere: boolean): Exclude<PasskeyDeciders, 'default'> =>
  setting === 'default' ? (elsewhere ? 'agents_owner' : 'approvers') : setting;
