/** Describes a call in one sentence: by the template of its operation, or generically. */
import { type CallAsk, readMembers } from '../policy/call-ask.ts';
import { argumentsOf } from '../policy/graphql/arguments.ts';
import { readGraphqlCall } from '../policy/graphql/call.ts';
import { isGraphql, parseOperation } from '../policy/operation.ts';
import type { PlatformRules } from '../policy/platform-rules.ts';
import { namedRecipients, recipientRulesFor } from '../policy/recipients.ts';
import { toolOf } from '../policy/tool.ts';
import { fill } from './fill.ts';
import type { Judged, Request } from './judged.ts';
import type { MinorUnits } from './money.ts';
import type { Part, Sentence } from './part.ts';
import { counted, valuePart } from './readable.ts';
import { compileTemplate, type Template } from './template.ts';

/** The fields of a manifest for sentences. */
export type SentencesSource = {
  sentences?: Readonly<Record<string, string>> | undefined;
  minor_units?: MinorUnits | undefined;
};

export type Sentences = { templates: readonly Template[]; minorUnits: MinorUnits };

/** @throws Error with a sentence that names the operation and the problem of its template */
export function compileSentences({ sentences = {}, minor_units: minorUnits = {} }: SentencesSource): Sentences {
  const templates = Object.entries(sentences).map(([text, template]) => {
    try {
      return compileTemplate(parseOperation(text), template);
    } catch (error) {
      throw new Error(`sentences "${text}": ${error instanceof Error ? error.message : String(error)}`);
    }
  });
  return { templates, minorUnits };
}

/** The platform of a call. */
export type Platform = { rules: PlatformRules; sentences: Sentences };

/** The recorded method and path of a call; the method may be invalid. */
type CallPath = { method: string; path: string };

/** Describes a call that is made now. `toolTitle`: of an MCP server's tool, as it was accepted. */
export function sentenceOf(platform: Platform, call: CallAsk, { toolTitle }: { toolTitle?: string } = {}): Sentence {
  const { rules } = platform;
  if (isGraphql(rules, call)) return graphqlSentence(platform, call);
  const request = requestOf(rules, call, readMembers(call));
  const tool = rules.kind === 'mcp' ? toolOf(call.path) : undefined;
  if (tool !== undefined) return toolSentence(platform, tool, request, toolTitle);
  return httpSentence(platform, call, request);
}

/** Describes a call of which only method and path are recorded. `platform`: undefined when it no longer exists. */
export function sentenceOfPath(platform: Platform | undefined, call: CallPath): Sentence {
  if (platform === undefined) return plainHttp(call, undefined);
  const tool = platform.rules.kind === 'mcp' && call.method === 'POST' ? toolOf(call.path) : undefined;
  return tool === undefined ? httpSentence(platform, call, undefined) : toolSentence(platform, tool, undefined);
}

function requestOf(rules: PlatformRules, call: CallAsk, body: Request['body']): Request {
  return {
    query: call.query === '' ? [] : [...new URLSearchParams(call.query)],
    body,
    recipients: () => ({
      texts: namedRecipients(rules, call),
      names: recipientRulesFor(rules, call).flatMap(({ pointers }) =>
        pointers.map(({ pointer }) => pointer.slice(1).split('/').map(unescaped)),
      ),
    }),
  };
}

const unescaped = (name: string): string => name.replaceAll('~1', '/').replaceAll('~0', '~');

/** Returns the most specific matching template; most often there is one. */
function bestOf(found: readonly { template: Template; specificity: number }[]): Template | undefined {
  return found.reduce<{ template: Template; specificity: number } | undefined>(
    (best, one) => (best === undefined || one.specificity > best.specificity ? one : best),
    undefined,
  )?.template;
}

function filled(template: Template | undefined, judged: Judged): Sentence | undefined {
  const parts = template && fill(template.pieces, judged);
  return parts && template ? { parts, template: template.version } : undefined;
}

function httpSentence(
  { sentences: { templates, minorUnits } }: Platform,
  call: CallPath,
  request: Request | undefined,
): Sentence {
  const fitting = templates.flatMap((template) => {
    const { operation } = template;
    if (operation.kind !== 'http' || operation.method !== call.method || !operation.path.matches(call.path)) return [];
    return [{ template, specificity: operation.path.specificity }];
  });
  const template = bestOf(fitting);
  const segments = template?.operation.kind === 'http' ? template.operation.path.segments : [];
  return filled(template, { ...wildcards(segments, call.path), request, minorUnits }) ?? plainHttp(call, request);
}

/** Returns the texts that match each `*` and the `**` of a matching pattern. */
function wildcards(pattern: readonly string[], path: string): Pick<Judged, 'parameters' | 'rest'> {
  const segments = path.slice(1).split('/');
  const at = pattern.indexOf('**');
  const after = at < 0 ? 0 : pattern.length - at - 1;
  const fromEnd = (i: number) => segments.length - (pattern.length - i);
  const parameters = pattern.flatMap((piece, i) => {
    if (piece === '**' || !piece.includes('*')) return [];
    return [segments[at < 0 || i < at ? i : fromEnd(i)] ?? ''];
  });
  return { parameters, rest: at < 0 ? '' : segments.slice(at, segments.length - after).join('/') };
}

function plainHttp({ method, path }: CallPath, request: Request | undefined): Sentence {
  const verb = method === 'GET' ? 'read ' : `send a ${method} to `;
  const parameters = request?.query.length ?? 0;
  const fields = parameters + Object.keys(request?.body ?? {}).length;
  return {
    parts: [
      { text: verb },
      valuePart(path, { strong: true }),
      ...withCount(fields, method === 'GET' ? 'parameter' : 'field'),
    ],
    template: null,
  };
}

const withCount = (count: number, noun: string): Part[] =>
  count === 0 ? [] : [{ text: ` with ${counted(count, noun)}` }];

function toolSentence(
  { sentences: { templates, minorUnits } }: Platform,
  tool: string,
  request: Request | undefined,
  title?: string,
): Sentence {
  const fitting = templates.flatMap((template) =>
    template.operation.kind === 'tool' && template.operation.name.matches(tool)
      ? [{ template, specificity: template.operation.name.specificity }]
      : [],
  );
  const said = filled(bestOf(fitting), { parameters: [], rest: '', request, minorUnits });
  if (said) return said;
  const named: Part[] =
    title === undefined || title === '' ? [] : [{ text: ' (' }, valuePart(title, { quoted: true }), { text: ')' }];
  const count = Object.keys(request?.body ?? {}).length;
  return {
    parts: [{ text: 'use the tool ' }, valuePart(tool, { strong: true }), ...named, ...withCount(count, 'argument')],
    template: null,
  };
}

/** The limit of root fields that are listed. */
const MAX_FIELDS = 5;

function graphqlSentence({ rules, sentences: { templates, minorUnits } }: Platform, call: CallAsk): Sentence {
  const read = readGraphqlCall(readMembers(call));
  if (read.kind !== 'read') return plainHttp(call, requestOf(rules, call, readMembers(call)));
  const roots = read.roots.filter((root) => root.name.value !== '__typename');
  const [root] = roots;
  if (root !== undefined && roots.length === 1) {
    const name = root.name.value;
    const fitting = templates.flatMap((template) => {
      const { operation } = template;
      if (operation.kind !== 'graphql' || operation.operation !== read.operation) return [];
      return operation.field.matches(name) ? [{ template, specificity: operation.field.specificity }] : [];
    });
    const body = argumentsOf(root, read.definition, read.variables);
    const request = requestOf(rules, call, body);
    const said = filled(bestOf(fitting), { parameters: [], rest: '', request, minorUnits });
    if (said) return said;
    const parts: Part[] = [{ text: `run the GraphQL ${read.operation} ` }, valuePart(name, { strong: true })];
    return { parts: [...parts, ...withCount(Object.keys(body).length, 'argument')], template: null };
  }
  const names = (roots.length === 0 ? read.roots : roots).map((one) => one.name.value);
  const fields = names
    .slice(0, MAX_FIELDS)
    .flatMap((name, i): Part[] => [...(i === 0 ? [] : [{ text: ', ' }]), valuePart(name, { strong: true })]);
  const more = names.length > MAX_FIELDS ? [{ text: ` and ${names.length - MAX_FIELDS} more` }] : [];
  const head = { text: `run a GraphQL ${read.operation} of ${counted(names.length, 'field')}: ` };
  return { parts: [head, ...fields, ...more], template: null };
}
