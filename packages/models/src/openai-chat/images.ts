// Images that a model makes in chat completions: OpenRouter's `images`, or parts of the content.
import type { DataBlock } from '@oxbow/core'

/** Undefined for what is no address of an image. */
export function imageOf(url: unknown): DataBlock | undefined {
  if (typeof url !== 'string') return undefined
  const [, mediaType, data] = /^data:([\w.+-]+\/[\w.+-]+)(?:;[^,]*)?;base64,(.+)$/s.exec(url) ?? []
  if (mediaType !== undefined && data !== undefined) return { type: 'data', mediaType, data }
  return /^https?:/.test(url) && URL.canParse(url) ? { type: 'data', mediaType: 'image/png', url } : undefined
}
