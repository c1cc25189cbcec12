// Numbers for the frames of a task. Stored events have their sequence number. Fragments of an answer are never stored,
// but a reader that disconnects among them must be able to name its position. A number therefore encodes the last
// stored event, the block of the answer, and how much of that block has been read.

const PER_EVENT = 1_000_000_000
const PER_BLOCK = 10_000_000
/** Blocks beyond this one are sent complete, when the answer is stored. */
export const MAX_BLOCKS = 97

/** The position of a stored event itself, before everything that belongs to it. */
export const atEvent = (seq: number, index = 0): number => seq * PER_EVENT + index

/** The position after `length` characters of a block. */
export const inBlock = (seq: number, block: number, length: number): number =>
  block < MAX_BLOCKS
    ? seq * PER_EVENT + (block + 1) * PER_BLOCK + Math.min(length, PER_BLOCK - 1)
    : seq * PER_EVENT + (MAX_BLOCKS + 1) * PER_BLOCK + (block - MAX_BLOCKS) * 2 + Math.min(length, 1)

/** The position after everything that belongs to an event. */
export const afterBlocks = (seq: number): number => seq * PER_EVENT + PER_EVENT - 1

export interface TaskPosition {
  readonly seq: number
  /** The part of an unstored answer that has been read. */
  readonly block: number
  readonly length: number
}

export function positionOf(number: number): TaskPosition {
  const rest = number % PER_EVENT
  return { seq: Math.floor(number / PER_EVENT), block: Math.floor(rest / PER_BLOCK) - 1, length: rest % PER_BLOCK }
}

/** Whether the number belongs to a fragment, or to an event within an answer. */
export const isWithinAnswer = (number: number): boolean => {
  const { block } = positionOf(number)
  return block >= 0 && block < MAX_BLOCKS
}
