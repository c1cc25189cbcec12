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

/** Whether a value is a block that users and tools may provide. */
export function isInputBlock(value: unknown): value is InputBlock {
  if (typeof value !== 'object' || value === null || !('type' in value)) return false
  if (value.type === 'text') return 'text' in value && typeof value.text === 'string'
  if (value.type !== 'data' || !('mediaType' in value) || typeof value.mediaType !== 'string') return false
  return ('data' in value && typeof value.data === 'string') || ('url' in value && typeof value.url === 'string')
}
