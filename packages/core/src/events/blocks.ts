// The text of messages, as programs read it and as people are shown it.
import type { Block, InputBlock, ResultBlock } from './types.ts'

type AnyBlock = Block | ResultBlock

/**
 * The text blocks, joined. Everything else (thinking, calls, images, files) has no text.
 *
 * @example textOf([{ type: 'text', text: 'Hello' }]) // 'Hello'
 */
export const textOf = (blocks: readonly AnyBlock[], separator = ''): string =>
  blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join(separator)

/**
 * Text blocks unchanged, and images and files as `[name]`, or as `[media type]` where they have no name.
 *
 * @example shownText([{ type: 'data', mediaType: 'image/png', data: '…' }]) // '[image/png]'
 */
export const shownText = (blocks: readonly AnyBlock[], separator = '\n'): string =>
  blocks
    .flatMap((block) =>
      block.type === 'text' ? [block.text] : block.type === 'data' ? [`[${block.name ?? block.mediaType}]`] : [],
    )
    .join(separator)

/** A type and a subtype; parameters may follow. */
const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+(\s*;.*)?$/
const BASE64 = /^[A-Za-z0-9+/_-]*={0,2}$/

/** Whether a value is a block that users and tools may provide. */
export function isInputBlock(value: unknown): value is InputBlock {
  if (typeof value !== 'object' || value === null || !('type' in value)) return false
  if (value.type === 'text') return 'text' in value && typeof value.text === 'string'
  if (value.type !== 'data' || !('mediaType' in value) || typeof value.mediaType !== 'string') return false
  if (!MEDIA_TYPE.test(value.mediaType)) return false
  if ('data' in value && value.data !== undefined) return typeof value.data === 'string' && BASE64.test(value.data)
  return 'url' in value && typeof value.url === 'string' && URL.canParse(value.url)
}
