/**
 * Headers that say what a call does: whose account it acts for, what it copies, that it is only tried. Left out, the call would do
 * something else than was asked for, so it is refused.
 */
import { isDropped } from './dropped-headers.ts';

/** Of a manifest. Patterns are names in lower case, or their beginning and `*`. */
type HeaderRules = {
  auth: { type: string };
  refused_headers?: readonly string[] | undefined;
  client_headers?: readonly string[] | undefined;
  default_headers?: Readonly<Record<string, string>> | undefined;
};

/**
 * AWS, and stores that speak its APIs, read operations in headers of their own: `x-amz-copy-source` (Amazon S3, "CopyObject"),
 * `x-amz-invocation-type` (AWS Lambda, "Invoke"), `x-minio-force-delete` (MinIO deletes whatever is below a prefix).
 */
const VENDOR = 'x-*';
/** About the client, its own signature, and the checksum and coding of its body: the call is the same without them. */
const AWS_NEEDLESS =
  `x-amz-date x-amz-content-sha256 x-amz-security-token x-amz-user-agent x-amz-checksum-* x-amz-sdk-checksum-algorithm
  x-amz-trailer x-amz-decoded-content-length x-amz-te`.split(/\s+/);
/** What libraries for tracing, load balancers, ingress controllers and platforms that host the broker add to any request. */
const FROM_ON_THE_WAY =
  `x-amzn-trace-id x-amzn-query-mode x-amzn-oidc-* x-amzn-mtls-* x-amzn-tls-* x-request-* x-requested-with x-correlation-id
  x-b3-* x-datadog-* x-cloud-trace-context x-ot-* x-instana-* x-dynatrace* x-newrelic-* x-envoy-* x-original-* x-scheme
  x-auth-request-redirect x-azure-* x-arr-* x-appservice-* x-site-deployment-id x-waws-unencoded-url x-appengine-*
  x-vercel-* x-varnish`.split(/\s+/);
const NEEDLESS = [...AWS_NEEDLESS, ...FROM_ON_THE_WAY];

/**
 * What AWS does without the header as well: rclone says of each object that it is private (Amazon S3, "PutObject", "CreateBucket"). It is
 * the whole of the call that gives an object that is there another ACL ("PutObjectAcl").
 */
const AWS_DEFAULTS: Readonly<Record<string, string>> = { 'x-amz-acl': 'private' };

const SETS_ACL = /[?&]acl(?:[=&]|$)/;

/** RFC 9110 §14.5: without it, a part of a representation would be written in place of the whole. */
const PART = 'content-range';

/** Headers of a call, by their names as they are written. */
type Given = Readonly<Record<string, string>>;

/** Whether a pattern is of the name, which is in lower case. */
export const matchesHeader = (patterns: readonly string[], name: string): boolean =>
  patterns.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one));

/**
 * The first of the headers that is refused: one of `refused_headers`, in any spelling that a server may take for it, whatever
 * `client_headers` names; and of those that `client_headers` and `default_headers` do not name, `Content-Range` of a write, and with
 * AWS any `x-…` that may say something of the call itself.
 */
export function refusedHeader(
  given: Given,
  { method, endpoint }: { method: string; endpoint: string },
  rules: HeaderRules,
): string | undefined {
  const { auth, refused_headers: refused = [], client_headers: sent = [] } = rules;
  const isAws = auth.type === 'aws_sigv4';
  const allowed = chosenByAgents(rules);
  return Object.keys(given).find((written) => {
    const plain = written.toLowerCase();
    if (allowed.has(plain)) return false;
    const name = plain.replace(/[^a-z0-9]/g, '-');
    if (matchesHeader(refused, name)) return true;
    if (isAws && AWS_DEFAULTS[plain] === given[written] && !SETS_ACL.test(endpoint)) return false;
    const isVendors = isAws && matchesHeader([VENDOR], name) && !matchesHeader(NEEDLESS, name) && !isDropped(name);
    if (!isVendors && (name !== PART || method === 'GET')) return false;
    return plain !== name || !matchesHeader(sent, name);
  });
}

/** Names of headers that are sent on this platform, although they are left out on others: `Content-Range`, where it is named. */
export function namedHeaders({ client_headers: sent = [], default_headers: defaults = {} }: HeaderRules): string[] {
  const isNamed = matchesHeader(sent, PART) || Object.keys(defaults).some((name) => name.toLowerCase() === PART);
  return isNamed ? [PART] : [];
}

/** Names of the headers, in lower case, that are left out on a platform of AWS: neither refused nor sent. */
export function withheldHeaders(given: Given, rules: HeaderRules): readonly string[] {
  const { auth, client_headers: sent = [] } = rules;
  if (auth.type !== 'aws_sigv4') return [];
  const allowed = chosenByAgents(rules);
  const isNeedless = (name: string, value: string | undefined): boolean =>
    matchesHeader(FROM_ON_THE_WAY, name) || (AWS_DEFAULTS[name] === value && !allowed.has(name));
  return Object.entries(given)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(
      ([name, value]) => matchesHeader(AWS_NEEDLESS, name) || (isNeedless(name, value) && !matchesHeader(sent, name)),
    )
    .map(([name]) => name);
}

/** Names, in lower case, of headers of which the manifest gives a value that agents may choose. */
const chosenByAgents = ({ default_headers: defaults = {} }: HeaderRules): ReadonlySet<string> =>
  new Set(Object.keys(defaults).map((name) => name.toLowerCase()));
