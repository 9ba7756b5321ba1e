/** Binary responses of platforms: returned as MCP content where MCP has a type for them, otherwise described, never as base64 in a text. */

/** Content of MCP (specification 2025-11-25, Tools, Tool Result) for bytes. */
export type Media =
  | { type: 'image' | 'audio'; data: string; mimeType: string }
  | { type: 'resource'; resource: { uri: string; mimeType: string; blob: string } };

/** In bytes. Larger pictures exceed what models handle well. */
const MOST_BYTES = 1024 * 1024;

/** Media types that models accept: another picture would cause an error at the model's provider. */
const IMAGES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const RESOURCES = new Set(['application/pdf']);

/** `base64`: the whole response. Undefined when MCP has no content type for it that clients can show. */
export function mediaOf(base64: string, type: string | undefined, auditId: string | undefined): Media | undefined {
  if (type === undefined || base64 === '' || Buffer.byteLength(base64, 'base64') > MOST_BYTES) return undefined;
  if (IMAGES.has(type)) return { type: 'image', data: base64, mimeType: type };
  if (type.startsWith('audio/')) return { type: 'audio', data: base64, mimeType: type };
  if (!RESOURCES.has(type)) return undefined;
  return {
    type: 'resource',
    resource: { uri: `agent-broker:answer/${auditId ?? 'result'}`, mimeType: type, blob: base64 },
  };
}

/** Describes a binary response in words. `isShown`: whether the bytes are beside the text. */
export const mediaInWords = (bytes: number | undefined, type: string | undefined, isShown: boolean): string =>
  `The platform answered ${bytes === undefined ? 'bytes' : `${bytes} bytes`} of ${type ?? 'no media type'}, which is no text. ${
    isShown
      ? 'They are next to this text.'
      : 'They are not shown here: a program gets them at /proxy/<connection>/<path> of the broker, with a token of this agent, or from POST /v1/actions in base64.'
  }`;
