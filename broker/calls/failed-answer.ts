/**
 * Whether an answer with a status of success says in its body that the platform did not do what it was asked: an error of an MCP tool
 * (`isError`) or of JSON-RPC, `errors` of GraphQL (GraphQL specification, section 7.1), or what the manifest names in `failed_if`.
 */
import type { UpstreamAnswer } from '../audit/outcome.ts';
import type { CompiledPlatform } from '../facts/compiled.ts';
import type { CallAsk } from '../policy/call-ask.ts';
import { isGraphql } from '../policy/operation.ts';

/** Bytes of JSON text: errors are short, and what is longer is not read again for this. */
const MOST = 256 * 1024;

type Platform = Pick<CompiledPlatform, 'manifest' | 'rules'>;
type Answer = Pick<UpstreamAnswer, 'upstreamStatus' | 'encoding' | 'dataJson'>;

/** `answer`: as it is passed on. What is no JSON, or too long, says nothing. */
export function saysFailed(
  { manifest, rules }: Platform,
  call: Pick<CallAsk, 'method' | 'path'>,
  answer: Answer,
): boolean {
  const { upstreamStatus: status, encoding, dataJson } = answer;
  const { failed_if: sign } = manifest;
  const isTool = rules.kind === 'mcp';
  const hasErrors = isGraphql(rules, call);
  if (status < 200 || status > 299 || !(isTool || hasErrors || sign)) return false;
  if (encoding !== undefined || dataJson.length > MOST) return false;
  const data: unknown = JSON.parse(dataJson.toString());
  if (isTool) return at(data, '/isError') === true || isObject(at(data, '/error'));
  if (hasErrors) return lengthOf(at(data, '/errors')) > 0;
  return hasSign(sign, data);
}

/** Whether the body of an answer says what `failed_if` of the manifest names. */
export const hasSign = (sign: Platform['manifest']['failed_if'], data: unknown): boolean =>
  sign !== undefined && at(data, sign.at) === sign.is;

const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0);

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/** What a JSON pointer (RFC 6901) leads to; undefined: nothing. */
const at = (value: unknown, pointer: string): unknown =>
  pointer
    .split('/')
    .slice(1)
    .map((name) => name.replaceAll('~1', '/').replaceAll('~0', '~'))
    .reduce<unknown>(
      (inside, name) =>
        isObject(inside) && Object.hasOwn(inside, name) ? (inside as Record<string, unknown>)[name] : undefined,
      value,
    );
