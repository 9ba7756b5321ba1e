/**
 * Headers that determine what a call does: for whose account it acts, what it copies, whether it is a dry run. Dropping one would change
 * the call, so the call is refused.
 */
import { isDropped } from './dropped-headers.ts';

/** The relevant part of a manifest. Patterns are lower-case names, or prefixes followed by `*`. */
type HeaderRules = {
  auth: { type: string };
  refused_headers?: readonly string[] | undefined;
  client_headers?: readonly string[] | undefined;
  default_headers?: Readonly<Record<string, string>> | undefined;
};

/**
 * AWS, and stores with AWS-compatible APIs, take operations from vendor headers: `x-amz-copy-source` (Amazon S3, "CopyObject"),
 * `x-amz-invocation-type` (AWS Lambda, "Invoke"), `x-minio-force-delete` (MinIO deletes everything below a prefix).
 */
const VENDOR = 'x-*';
/** Headers about the client, its own signature, and the checksum and encoding of its body: the call is the same without them. */
const AWS_INSIGNIFICANT =
  `x-amz-date x-amz-content-sha256 x-amz-security-token x-amz-user-agent x-amz-checksum-* x-amz-sdk-checksum-algorithm
  x-amz-trailer x-amz-decoded-content-length x-amz-te`.split(/\s+/);
/** Headers that tracing libraries, load balancers, ingress controllers and hosting platforms add to any request. */
const FROM_INTERMEDIARIES =
  `x-amzn-trace-id x-amzn-query-mode x-amzn-oidc-* x-amzn-mtls-* x-amzn-tls-* x-request-* x-requested-with x-correlation-id
  x-b3-* x-datadog-* x-cloud-trace-context x-ot-* x-instana-* x-dynatrace* x-newrelic-* x-envoy-* x-original-* x-scheme
  x-auth-request-redirect x-azure-* x-arr-* x-appservice-* x-site-deployment-id x-waws-unencoded-url x-appengine-*
  x-vercel-* x-varnish`.split(/\s+/);
const INSIGNIFICANT = [...AWS_INSIGNIFICANT, ...FROM_INTERMEDIARIES];

/**
 * AWS behaves the same without these headers: rclone marks each object as private (Amazon S3, "PutObject", "CreateBucket"). Only for
 * setting the ACL of an existing object ("PutObjectAcl") is the header the whole call.
 */
const AWS_DEFAULTS: Readonly<Record<string, string>> = { 'x-amz-acl': 'private' };

const SETS_ACL = /[?&]acl(?:[=&]|$)/;

/** RFC 9110 §14.5: without it, a partial representation would replace the whole. */
const PART = 'content-range';

/** Headers of a call, by their names as written. */
type Given = Readonly<Record<string, string>>;

/** Whether a pattern matches the name, which is in lower case. */
export const matchesHeader = (patterns: readonly string[], name: string): boolean =>
  patterns.some((one) => (one.endsWith('*') ? name.startsWith(one.slice(0, -1)) : name === one));

/**
 * Returns the first header that is refused: one of `refused_headers`, in any spelling that a server may fold to it, even when
 * `client_headers` names it; and, unless `client_headers` or `default_headers` name it, `Content-Range` of a write, and with AWS any `x-…`
 * header that may change the call.
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
    const isVendors = isAws && matchesHeader([VENDOR], name) && !matchesHeader(INSIGNIFICANT, name) && !isDropped(name);
    if (!isVendors && (name !== PART || method === 'GET')) return false;
    return plain !== name || !matchesHeader(sent, name);
  });
}

/** Header names that are sent on this platform although they are dropped on others: `Content-Range`, when the manifest names it. */
export function namedHeaders({ client_headers: sent = [], default_headers: defaults = {} }: HeaderRules): string[] {
  const isNamed = matchesHeader(sent, PART) || Object.keys(defaults).some((name) => name.toLowerCase() === PART);
  return isNamed ? [PART] : [];
}

/** Lower-case names of headers that are dropped on an AWS platform: neither refused nor sent. */
export function withheldHeaders(given: Given, rules: HeaderRules): readonly string[] {
  const { auth, client_headers: sent = [] } = rules;
  if (auth.type !== 'aws_sigv4') return [];
  const allowed = chosenByAgents(rules);
  const isInsignificant = (name: string, value: string | undefined): boolean =>
    matchesHeader(FROM_INTERMEDIARIES, name) || (AWS_DEFAULTS[name] === value && !allowed.has(name));
  return Object.entries(given)
    .map(([name, value]) => [name.toLowerCase(), value] as const)
    .filter(
      ([name, value]) =>
        matchesHeader(AWS_INSIGNIFICANT, name) || (isInsignificant(name, value) && !matchesHeader(sent, name)),
    )
    .map(([name]) => name);
}

/** Lower-case names of headers with a default in the manifest, whose value agents may choose. */
const chosenByAgents = ({ default_headers: defaults = {} }: HeaderRules): ReadonlySet<string> =>
  new Set(Object.keys(defaults).map((name) => name.toLowerCase()));
