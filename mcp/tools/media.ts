/** Binary responses of platforms: returned as MCP content where MCP has a type for them, otherwise described, never as base64 in a text. */

/** Content of MCP (specification 2025-11-25, Tools, Tool Result) for bytes. */
export type Media =
  | { type: 'image' | 'audio'; data: string; mimeType: string }
  | { type: 'resource'; resource: { uri: string; mimeType: string; blob: string } };

/** In bytes. Larger pictures exceed what models handle well. */
const MAX_BYTES = 1024 * 1024;

/** Media types that models accept: another picture would cause an error at the model's provider. */
const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const RESOURCES = new Set(['application/pdf']);

/** `base64`: all of the bytes. `uri`: names them as a resource. Undefined when MCP has no content type for them that clients can show. */
export function mediaOf(base64: string, type: string | undefined, uri: string): Media | undefined {
  if (type === undefined || base64 === '' || Buffer.byteLength(base64, 'base64') > MAX_BYTES) return undefined;
  if (IMAGES.has(type)) return { type: 'image', data: base64, mimeType: type };
  if (type.startsWith('audio/')) return { type: 'audio', data: base64, mimeType: type };
  return RESOURCES.has(type) ? { type: 'resource', resource: { uri, mimeType: type, blob: base64 } } : undefined;
}

/** In characters. Base64 that cannot be shown stays in the answer up to this length: the model may need it for another call, such as a signature. */
const SHORT_BASE64 = 4_096;

/** A repeated write would be a second one. */
const NOT_AGAIN = 'Do not repeat a call that changes something to get them.';

/** Describes a binary response in words. `bytes`: undefined when only the beginning was kept. `isShown`: whether the bytes are beside the text. */
export const describeMedia = (bytes: number | undefined, type: string | undefined, isShown: boolean): string =>
  `The platform answered ${bytes === undefined ? 'bytes' : `${bytes} bytes`} of ${type ?? 'no media type'}, which is no text. ${
    isShown
      ? 'They are next to this text.'
      : bytes === undefined
        ? `They are not shown here, because only their beginning was kept. ${NOT_AGAIN}`
        : `They are not shown here: a program gets them at /proxy/<connection>/<path> of the broker, with a token of this agent, or from POST /v1/actions in base64. ${NOT_AGAIN}`
  }`;

/**
 * Moves pictures, sound and files out of the result of a tool of an MCP server (MCP, Tool Result), where their base64 would cost the model a long
 * text. Type and size stay in `data`. `words`: where the bytes are; undefined when there are none.
 */
export function withoutMedia(data: unknown): { data: unknown; media: Media[]; words?: string } {
  const media: Media[] = [];
  if (!isObject(data) || !Array.isArray(data.content)) return { data, media };
  let left = MAX_BYTES;
  let hidden = 0;
  const content = data.content.map((block: unknown) => {
    const found = bytesIn(block);
    if (found === undefined) return block;
    const { base64, type, uri, rest } = found;
    const bytes = Buffer.byteLength(base64, 'base64');
    const shown = bytes <= left && isBase64(base64) ? mediaOf(base64, type, uri) : undefined;
    if (shown !== undefined) {
      left -= bytes;
      media.push(shown);
    } else if (base64.length > SHORT_BASE64) hidden++;
    else return block;
    return rest(bytes);
  });
  if (media.length + hidden === 0) return { data, media };
  const words = `Parts of the answer that are no text: ${media.length} next to this text${
    hidden === 0
      ? '.'
      : `, ${hidden} not shown here, because of their type or because all together are larger than 1 MiB: a program gets them from POST /v1/actions in base64. ${NOT_AGAIN}`
  }`;
  return { data: { ...data, content }, media, words };
}

type Bytes = { base64: string; type: string | undefined; uri: string; rest: (bytes: number) => unknown };

function bytesIn(block: unknown): Bytes | undefined {
  if (!isObject(block)) return undefined;
  if (block.type === 'image' || block.type === 'audio') {
    const { data, ...rest } = block;
    if (typeof data !== 'string') return undefined;
    return { base64: data, type: text(block.mimeType), uri: '', rest: (bytes) => ({ ...rest, bytes }) };
  }
  const { resource } = block;
  if (block.type !== 'resource' || !isObject(resource)) return undefined;
  const { blob, ...named } = resource;
  if (typeof blob !== 'string') return undefined;
  const { uri, mimeType } = resource;
  const rest = (bytes: number) => ({ ...block, resource: { ...named, bytes } });
  return { base64: blob, type: text(mimeType), uri: text(uri) ?? 'agent-broker:answer/result', rest };
}

const text = (value: unknown): string | undefined => (typeof value === 'string' ? value : undefined);

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null;

/** Clients refuse a whole result with malformed base64 in it. */
const isBase64 = (value: string): boolean => Buffer.from(value, 'base64').toString('base64') === value;
