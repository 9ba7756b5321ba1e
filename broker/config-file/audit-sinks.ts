/** Schemas of audit sinks, in a governance file, in the owner API and in the store: settings by kind, the secret apart. */
import { z } from 'zod';
import { HeaderValue, PlatformHeaderName, PlatformUrl } from '../platforms/fields.ts';
import { readSecretParts } from '../platforms/secret-parts.ts';
import { name } from './name.ts';
import { SecretInParts } from './secret-in-parts.ts';

/** The name of a sink is also used as a file name. */
export const SinkName = name('Name of the sink; a sink of the kind file writes NAME.jsonl.');

export const FORMATS = ['ocsf', 'json'] as const;
export const Format = z
  .enum(FORMATS)
  .describe('ocsf: OCSF 1.9.0, API Activity; json: rows as an export of the receipt log has them.');
export type Format = z.infer<typeof Format>;

const header = PlatformHeaderName.optional();
const url = (what: string) => PlatformUrl.describe(what).meta({ format: 'uri' });

const KINDS = {
  webhook: {
    url: url('Where batches are posted to; without a query.'),
    header: header.describe(
      'Header in which the secret is sent as it is, such as "authorization". Absent: the secret signs (Standard Webhooks).',
    ),
  },
  otlp: {
    url: url('Address of the collector (OTLP over HTTP); /v1/logs is added.'),
    header: header.describe('Header in which the secret is sent as it is. Absent: authorization.'),
  },
  s3: {
    url: url('Address of the storage, such as https://s3.eu-central-1.amazonaws.com.'),
    region: z
      .string()
      .regex(/^[a-z0-9-]{1,50}$/, 'write the name of a region, such as "eu-central-1"')
      .describe('Region that is signed for.'),
    bucket: z
      .string()
      .regex(
        /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/,
        'write the name of a bucket: lower case letters, digits, "." and "-"',
      )
      .describe('The bucket.'),
    prefix: z
      .string()
      .regex(
        /^[A-Za-z0-9_-][A-Za-z0-9_.=-]*(\/[A-Za-z0-9_-][A-Za-z0-9_.=-]*)*$/,
        'write names of letters, digits, "_", "-", "." and "=", with "/" between them',
      )
      .max(256)
      .optional()
      .describe('Prefix of the object keys.'),
    path_style: z
      .boolean()
      .optional()
      .describe('Whether the bucket is in the path. Absent: yes; false: in the host name.'),
  },
  file: {
    max_bytes: z
      .int()
      .min(1_024)
      .max(10 * 1024 ** 3)
      .optional()
      .describe('Size at which the file is renamed and a new one begun. Absent: 100 MiB.'),
  },
} as const satisfies Record<string, z.ZodRawShape>;

export type SinkKindName = keyof typeof KINDS;
export const SINK_KINDS = Object.keys(KINDS) as [SinkKindName, ...SinkKindName[]];

/** Returns the schema of a sink. `more`: members in addition to kind and settings. */
export const sinkForm = <More extends z.ZodRawShape>(more: More) =>
  z.discriminatedUnion('kind', [
    z.strictObject({ kind: z.literal('webhook'), ...KINDS.webhook, ...more }),
    z.strictObject({ kind: z.literal('otlp'), ...KINDS.otlp, ...more }),
    z.strictObject({ kind: z.literal('s3'), ...KINDS.s3, ...more }),
    z.strictObject({ kind: z.literal('file'), ...KINDS.file, ...more }),
  ]);

/** Limited, because each sink reads the log separately. */
export const MAX_SINKS = 20;

/** Schema of a sink in a governance file. */
export const SinkInFile = sinkForm({
  format: Format.default('ocsf'),
  from: z
    .enum(['now', 'beginning'])
    .optional()
    .describe(
      'Where a new sink begins: with rows from now on, which is the default, or with the first row of the receipt log. An existing sink continues where it is.',
    ),
  secret: SecretInParts.optional().describe(
    'Where the secret is found: the key that signs, or what is sent in the header (webhook), what is sent in the header (otlp), access_key_id and secret_access_key (s3). Without it the one that the sink has stays.',
  ),
});
export type SinkEntry = z.infer<typeof SinkInFile>;

/** Why a sink of the kind file cannot be added to this broker. */
export const NO_AUDIT_FOLDER = 'this broker writes no files: its operator has to set AUDIT_FOLDER.';

/** The settings of each kind, as they are stored. */
export const STORED_SETTINGS = {
  webhook: z.strictObject(KINDS.webhook),
  otlp: z.strictObject(KINDS.otlp),
  s3: z.strictObject(KINDS.s3),
  file: z.strictObject(KINDS.file),
} as const;
export type SettingsOf<Kind extends SinkKindName> = z.infer<(typeof STORED_SETTINGS)[Kind]>;

/** The secret of each kind; null: it has none. `made`: the broker generates it; `is`: its description; `parts`: the names of its parts. */
const SECRETS: Record<SinkKindName, { secret: 'made' | 'needed' | 'optional'; is: string; parts: string[] } | null> = {
  webhook: {
    secret: 'made',
    is: 'the key that signs ("whsec_…", Standard Webhooks), or, with a header, what is sent in it',
    parts: [],
  },
  otlp: { secret: 'optional', is: 'what is sent in the header', parts: [] },
  s3: { secret: 'needed', is: 'the access key', parts: ['access_key_id', 'secret_access_key', 'session_token'] },
  file: null,
};

/** The kinds as data, from which the console generates its forms. `settings`: JSON Schema of an object. */
export const describedSinkKinds = () =>
  SINK_KINDS.map((kind) => ({
    kind,
    settings: z.toJSONSchema(STORED_SETTINGS[kind], { io: 'input', unrepresentable: 'any' }) as Record<string, unknown>,
    secret: SECRETS[kind]?.secret ?? null,
    secret_is: SECRETS[kind]?.is ?? null,
    secret_parts: SECRETS[kind]?.parts ?? [],
  }));

/** Returns those members of a sink that are settings of its kind. */
export const settingsIn = (given: { kind: SinkKindName } & Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(
    Object.entries(given).filter(([key, value]) => Object.hasOwn(KINDS[given.kind], key) && value !== undefined),
  );

const SIGNING_KEY = /^whsec_[A-Za-z0-9+/]{32,88}={0,2}$/;

/** Whether the broker generates a missing secret: the key that signs webhooks. */
export const makesSecret = (kind: SinkKindName, settings: Record<string, unknown>): boolean =>
  kind === 'webhook' && settings.header === undefined;

/** Returns what is wrong with the secret of a sink, or with its absence, in words; undefined when nothing is. */
export function sinkSecretProblem(
  kind: SinkKindName,
  settings: Record<string, unknown>,
  secret: string | undefined,
): string | undefined {
  if (kind === 'file') return secret === undefined ? undefined : 'a file has none; leave it out';
  if (kind === 's3') {
    if (secret === undefined) return 'is missing; it has the parts access_key_id and secret_access_key';
    const read = readSecretParts(s3Auth({ region: String(settings.region) }), secret);
    return read.ok ? undefined : `it ${read.problem}`;
  }
  if (makesSecret(kind, settings))
    return secret === undefined || SIGNING_KEY.test(secret)
      ? undefined
      : 'write "whsec_" and 24 to 64 random bytes in base64; or name the header in which it is to be sent';
  if (secret === undefined)
    return settings.header === undefined ? undefined : 'is missing; it is what is sent in the header';
  return HeaderValue.safeParse(secret).success ? undefined : 'is not the value of a header: write printable ASCII';
}

/** The authentication of requests to S3. */
export const s3Auth = ({ region }: { region: string }) => ({ type: 'aws_sigv4' as const, region, service: 's3' });
