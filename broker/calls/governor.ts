/** What every door to a decision needs: the broker, and what the rooms around calls keep for a process. */
import type { Broker } from '../broker.ts';
import { type AuthenticateAgent, agentAuthenticator } from '../identity/authenticate-agent.ts';
import { type LocalCredential, makeLocalCredential } from '../identity/owner-session.ts';
import { compiledGovernance } from './compiled.ts';
import { type FactsLoader, factsLoader } from './facts.ts';
import { type Credentials, credentialOpener } from './forward.ts';
import { type PermissionsReader, permissionsReader } from './permissions.ts';
import { makeRecorder, type Recorder } from './record.ts';

export type Governor = {
  broker: Broker;
  loadFacts: FactsLoader;
  credentials: Credentials;
  permissions: PermissionsReader;
  recorder: Recorder;
  authenticateAgent: AuthenticateAgent;
  local: LocalCredential;
};

export function makeGovernor(broker: Broker): Governor {
  return {
    broker,
    loadFacts: factsLoader(broker, compiledGovernance(broker)),
    credentials: credentialOpener(broker),
    permissions: permissionsReader(),
    recorder: makeRecorder(broker),
    authenticateAgent: agentAuthenticator(broker),
    local: makeLocalCredential(),
  };
}
