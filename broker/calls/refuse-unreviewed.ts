/** Refuses all calls on a restored store until an admin has reviewed it. */
import type { AgentPrincipal } from '../auth/principal.ts';

/** The call was not examined and nothing was recorded. The message is for the caller. */
export class StoreUnreviewed extends Error {
  constructor() {
    super(
      'This broker was restored from a backup, and makes no calls until an admin has reviewed it: suspensions and revocations after the backup are not ' +
        'known. Nothing was sent. Ask an admin to look at Restored in the console, or at GET /owner/restored; then try again.',
    );
    this.name = 'StoreUnreviewed';
  }
}

/** Throws StoreUnreviewed. Costs no query: the flag is loaded with the authentication. */
export function refuseUnreviewed({ agent }: { agent: Pick<AgentPrincipal['agent'], 'restored'> }): void {
  if (agent.restored !== null) throw new StoreUnreviewed();
}
