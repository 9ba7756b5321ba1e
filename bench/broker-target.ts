/** The broker as the bench sees it. */
import type { BenchAgent } from './tokens.ts';

export type BrokerOptions = {
  /** How many active agents are stored, each with a grant on the bench's platform. */
  agents: number;
  /** Origin of the bench's upstream, `http://127.0.0.1:port`: the `base_url` of the platform. */
  upstreamUrl: string;
} & ({ store: 'sqlite' } | { store: 'postgres'; databaseUrl: string });

export type BrokerTarget = {
  baseUrl: string;
  /** The serving process; its descendants are measured with it. */
  pid: number;
  /** Agents to call as: at most 1,000 of those stored, evenly spread over them. */
  agents: readonly BenchAgent[];
  /** Milliseconds from `npm start` to the first 200 of `/health`, on the seeded store. */
  healthAfterMs: number;
  /** Rows in the audit now. */
  auditCount(): Promise<number>;
  /** Verifies the receipt of every audit row against the published key set. */
  verifyReceipts(): Promise<{ verified: number; failed: number }>;
  stop(): Promise<void>;
};

/**
 * Seeds a store of its own in a temporary folder and serves a broker on it: the bench's platform (`BENCH_PLATFORM` in
 * requests.ts), a policy of ten rules one of which has a CEL condition, and the agents, with rate limits out of the way
 * (`AGENT_BROKER_LIMIT_FACTOR`) and the upstream allowed (`AGENT_BROKER_ALLOW_PRIVATE`). undefined while there is no
 * broker to serve.
 */
export async function startBroker(_options: BrokerOptions): Promise<BrokerTarget | undefined> {
  return undefined;
}
