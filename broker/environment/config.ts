/** Reads and validates the environment once. No other module reads `process.env`. */
import { join, relative, resolve } from 'node:path';
import { z } from 'zod';
import { Secret } from '../crypto/secret.ts';
import type { OtelConfig } from '../telemetry/open-telemetry.ts';
import { contradictions } from './conflicts.ts';
import { DATABASE_VARIABLES } from './database.ts';
import { EntitlementsOff } from './entitlements.ts';
import {
  byteSize,
  CLIENT_VARIABLES,
  decimal,
  isAddressRange,
  isForClients,
  isHost,
  isOrigin,
  isProxy,
  listed,
} from './forms.ts';
import { OIDC_VARIABLES, type OidcConfig, oidcOf } from './oidc.ts';
import { OTEL_VARIABLES, otelOf } from './otel.ts';
import { RateLimitUrl } from './rate-limit.ts';
import { type WitnessAddress, Witnesses } from './witnesses.ts';

const port = decimal(
  'a port number from 0 to 65535',
  z.int('must be a whole number').max(65_535, 'must be a port number from 0 to 65535'),
);
const positive = decimal('a number above 0', z.number().positive());

const Environment = z.object({
  PORT: port.default(8787).describe('port to listen on; 0 takes a free one'),
  HOST: z.string().min(1).default('127.0.0.1').describe('address to listen on'),
  BASE_URL: z
    .string()
    .refine(isOrigin, 'must be https://host or http://host, with :port or without, and nothing more')
    .optional()
    .describe('public address of the broker; its host is the DID host and the passkey rpId'),
  PROXY_HOST: z
    .string()
    .refine(isHost, 'must be a host name, with :port or without, and nothing more')
    .optional()
    .describe('separate host for /git and /proxy, which no other host serves then'),
  ...DATABASE_VARIABLES,
  OUTBOUND_PROXY: z
    .string()
    .refine(
      isProxy,
      'must be http://host:port or https://host:port, with user:password@ (percent-encoded) before the host or without',
    )
    .optional()
    .describe('proxy by which everything is reached that AGENT_BROKER_ALLOW_PRIVATE does not list'),
  RATE_LIMIT_URL: RateLimitUrl,
  DRAIN_SECONDS: decimal('a number of seconds from 0 to 300', z.number().max(300))
    .optional()
    .describe('seconds for which a broker still accepts calls after the signal to stop; 0 at a terminal, else 5'),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('least level logged'),
  METRICS_TOKEN: z.string().min(16).optional().describe('bearer that may read /metrics, and the reasons of /health'),
  GIT_MAX_REQUEST_BYTES: byteSize.default(64 * 1024 * 1024).describe('largest git request body'),
  TRUSTED_PROXIES: z
    .string()
    .refine((text) => text.split(',').every((entry) => isAddressRange(entry.trim())), 'must be addresses or ranges')
    .optional()
    .describe('comma-separated addresses of reverse proxies whose X-Forwarded-For is believed'),
  ...OIDC_VARIABLES,
  AGENT_BROKER_DATA: z.string().min(1).default('./.agent-broker').describe('data folder'),
  AGENT_BROKER_MASTER_KEY: z.string().optional().describe('master key, 32 bytes in base64'),
  AGENT_BROKER_MASTER_KEY_PREVIOUS: z.string().optional().describe('the key before it, while a rotation runs'),
  AGENT_BROKER_KEY_FILE: z.string().min(1).optional().describe('file of the master key'),
  AGENT_BROKER_LIMIT_FACTOR: positive
    .default(1)
    .describe('multiplies every rate limit and, above 1, the budgets of calls, for load tests'),
  AGENT_BROKER_METRICS: z
    .enum(['on', 'off'])
    .default('on')
    .describe('whether calls are measured, and /metrics is served'),
  AGENT_BROKER_CLIENT_ID_DOCUMENTS: z
    .enum(['on', 'off'])
    .default('on')
    .describe(
      'whether MCP clients may be known by a client id metadata document, which is fetched; off: they register',
    ),
  AGENT_BROKER_ENTITLEMENTS_OFF: EntitlementsOff,
  MCP_ORIGINS: z
    .string()
    .default('')
    .transform(listed)
    .pipe(z.array(z.string().refine(isOrigin, 'must be https://host or http://host, with :port or without')))
    .describe('comma-separated origins of web pages that may use /mcp from browsers'),
  PUSH_CONTACT: z
    .string()
    .max(254)
    .regex(/^(mailto:[^\s@]+@[^\s@]+|https:\/\/\S+)$/, 'must be mailto:somebody@example.com or an https address')
    .optional()
    .describe('whom push services may write to; BASE_URL unless set'),
  LOG_WITNESSES: Witnesses,
  AUDIT_FOLDER: z.string().min(1).optional().describe('folder in which audit sinks of the kind file write'),
  AGENT_BROKER_ALLOW_PRIVATE: z
    .string()
    .default('')
    .transform(listed)
    .pipe(z.array(z.string().regex(/^(\[[0-9a-f:.]+\]|[^\s:/@]+):\d{1,5}$/i, 'must be host:port')))
    .describe('comma-separated host:port that platforms may reach though private'),
  ...OTEL_VARIABLES,
});

export type Config = {
  port: number;
  host: string;
  /** Without a trailing slash. Undefined: `http://localhost:<port>`, known once the port is. */
  baseUrl: string | undefined;
  /** The host, with or without a port, that exclusively serves `/git` and `/proxy`. Undefined: every host serves them. */
  proxyHost: string | undefined;
  databaseUrl: Secret | undefined;
  databaseConnections: number;
  /** A standby of the database; undefined: none. */
  databaseReadUrl: Secret | undefined;
  /** The proxy for outgoing requests; undefined: direct connections. */
  outboundProxy: Secret | undefined;
  /** The shared counter of rate limits; undefined: PostgreSQL, if that is the store. */
  rateLimitUrl: RateLimitUrl;
  /** Undefined: the default of the command depends on where it runs. */
  drainSeconds: number | undefined;
  logLevel: z.infer<typeof Environment>['LOG_LEVEL'];
  metricsToken: Secret | undefined;
  metrics: boolean;
  /** Where traces and metrics are exported; undefined: nowhere. */
  otel: OtelConfig | undefined;
  /** `mailto:` or `https:`; the contact for push services. */
  pushContact: string | undefined;
  /** The witnesses that co-sign checkpoints of receipt logs. */
  logWitnesses: readonly WitnessAddress[];
  /** The folder below which audit sinks of the kind `file` write; undefined: none may. */
  auditFolder: string | undefined;
  gitMaxRequestBytes: number;
  trustedProxies: string | undefined;
  /** The provider at which owners sign in; undefined: they sign in by links of this broker. */
  oidc: OidcConfig | undefined;
  dataFolder: string;
  masterKey: Secret | undefined;
  previousMasterKey: Secret | undefined;
  keyFile: string;
  limitFactor: number;
  allowPrivate: readonly string[];
  /** Whether MCP clients may name a client id metadata document, which the broker then fetches. */
  clientIdDocuments: boolean;
  /** The origins of web pages that may use `/mcp` from browsers. */
  mcpOrigins: readonly string[];
  /** Entitlements that all organisations lack, or one of them (`of`: its id). */
  entitlementsOff: EntitlementsOff;
};

/** The environment is invalid; the message names each variable and what it accepts. */
export class ConfigError extends Error {}

/** Reads the configuration. Error messages never contain values that name a file or a secret: a message may end up in a log. */
export function readConfig(environment: Readonly<Record<string, string | undefined>>): Config {
  const known = new Set([...Object.keys(Environment.shape), ...CLIENT_VARIABLES]);
  const unknown = Object.keys(environment).filter(
    (name) => name.startsWith('AGENT_BROKER_') && !known.has(name) && !isForClients(name),
  );
  const present = Object.fromEntries(
    Object.entries(environment).filter(
      ([name, value]) => name in Environment.shape && value !== undefined && value !== '',
    ),
  );
  const parsed = Environment.safeParse(present);
  const complaints = [
    ...unknown.map(
      (name) =>
        `${name} is not a setting of the broker; AGENT_BROKER_* names are: ${[...known].filter((n) => n.startsWith('AGENT_BROKER_')).join(', ')}`,
    ),
    ...(parsed.error?.issues.map((issue) => {
      const name = String(issue.path[0]);
      return `${name}: ${issue.message} (${Environment.shape[name as keyof typeof Environment.shape].description})`;
    }) ?? []),
    ...contradictions(environment),
  ];
  if (!parsed.success || complaints.length > 0)
    throw new ConfigError(`The environment cannot be used:\n${complaints.map((line) => `  - ${line}`).join('\n')}`);
  const env = parsed.data;
  const secret = (text: string | undefined) => (text === undefined ? undefined : new Secret(text));
  const dataFolder = resolve(env.AGENT_BROKER_DATA);
  const keyFile = env.AGENT_BROKER_KEY_FILE
    ? resolve(env.AGENT_BROKER_KEY_FILE)
    : join(dataFolder, 'keys', 'master.key');
  if (!relative(join(dataFolder, 'store'), keyFile).startsWith('..'))
    throw new ConfigError(
      "The environment cannot be used:\n  - AGENT_BROKER_KEY_FILE: keep it out of the store's folder, or every backup of the store carries its key",
    );
  return {
    port: env.PORT,
    host: env.HOST,
    baseUrl: env.BASE_URL && new URL(env.BASE_URL).origin,
    proxyHost: env.PROXY_HOST?.toLowerCase(),
    databaseUrl: secret(env.DATABASE_URL),
    databaseConnections: env.DATABASE_CONNECTIONS,
    databaseReadUrl: secret(env.DATABASE_READ_URL),
    outboundProxy: secret(env.OUTBOUND_PROXY),
    rateLimitUrl: env.RATE_LIMIT_URL,
    drainSeconds: env.DRAIN_SECONDS,
    logLevel: env.LOG_LEVEL,
    metricsToken: secret(env.METRICS_TOKEN),
    metrics: env.AGENT_BROKER_METRICS === 'on',
    otel: otelOf(env),
    pushContact: env.PUSH_CONTACT,
    logWitnesses: env.LOG_WITNESSES,
    auditFolder: env.AUDIT_FOLDER && resolve(env.AUDIT_FOLDER),
    gitMaxRequestBytes: env.GIT_MAX_REQUEST_BYTES,
    trustedProxies: env.TRUSTED_PROXIES,
    oidc: oidcOf(env),
    dataFolder,
    masterKey: secret(env.AGENT_BROKER_MASTER_KEY),
    previousMasterKey: secret(env.AGENT_BROKER_MASTER_KEY_PREVIOUS),
    keyFile,
    limitFactor: env.AGENT_BROKER_LIMIT_FACTOR,
    allowPrivate: env.AGENT_BROKER_ALLOW_PRIVATE,
    mcpOrigins: env.MCP_ORIGINS.map((one) => new URL(one).origin),
    clientIdDocuments: env.AGENT_BROKER_CLIENT_ID_DOCUMENTS === 'on',
    entitlementsOff: env.AGENT_BROKER_ENTITLEMENTS_OFF,
  };
}
