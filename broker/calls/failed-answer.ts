/**
 * Whether an answer with a status of success says in its body that the platform did not do what it was asked: an error of an MCP tool
 * (`isError`) or of JSON-RPC, `errors` of GraphQL (GraphQL specification, section 7.1), or what the manifest names in `failed_if`.
 */
import type { UpstreamAnswer } from '../audit/outcome.ts';
import type { CompiledPlatform } from '../facts/compiled.ts';
import { at, hasSign, isObject } from '../platforms/error-sign.ts';
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

const lengthOf = (value: unknown): number => (Array.isArray(value) ? value.length : 0);
