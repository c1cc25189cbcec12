// What a capability remembers of a session, beside the conversation: todos, a plan, files that were read.
import { OxbowError } from './errors.ts'
import { anything, checkFields } from './fields.ts'

/**
 * A typed place in the state of a session. Its value is JSON, kept in the journal by `state.changed` and so on every
 * replica; `reduce` is the only way in which it changes, pure, and run against the newest value.
 */
export interface Slot<Value, Change = Value> {
  readonly name: string
  readonly initial: Value
  readonly reduce: (value: Value, change: Change) => Value
}

/** A change that waits for the outcome of the call that made it. */
export interface SlotChange {
  readonly slot: Slot<unknown, unknown>
  readonly change: unknown
}

export interface SlotAccess {
  /** The value as of now, with the changes that this call has made. */
  read<Value, Change>(slot: Slot<Value, Change>): Value
  /** Stored together with the result of the call, and only if it succeeds: both or neither, exactly once. */
  change<Value, Change>(slot: Slot<Value, Change>, change: Change): void
}

const NAME = /^[a-z][a-z0-9-]{0,63}$/

/**
 * Defines a slot.
 *
 * @example
 * const todos = slot({ name: 'todos', initial: [] as string[], reduce: (list, added: string) => [...list, added] })
 * // in a tool's run(): context.state.change(todos, 'write tests')
 * @throws OxbowError `slot_invalid`
 */
export function slot<Value, Change>(definition: Slot<Value, Change>): Slot<Value, Change> {
  const { name, reduce } = definition
  if (!NAME.test(name))
    throw new OxbowError('slot_invalid', `A slot's name is up to 64 of a-z 0-9 -, not ${JSON.stringify(name)}.`)
  checkFields(
    definition,
    { name: anything, initial: anything, reduce: anything },
    (what) => new OxbowError('slot_invalid', `slot ${name}: ${what}`),
  )
  if (typeof reduce !== 'function') throw new OxbowError('slot_invalid', `slot ${name}: reduce must be a function`)
  return definition
}

export type Slots = Readonly<Record<string, unknown>>

/** What a session's slots hold; `initial` where nothing was ever stored. */
export const slotValue = <Value>(slots: Slots, { name, initial }: Pick<Slot<Value>, 'name' | 'initial'>): Value =>
  Object.hasOwn(slots, name) ? (slots[name] as Value) : initial

/** The slots that `changes` touch, with their new values. */
export function reduceAll(slots: Slots, changes: readonly SlotChange[]): Slots {
  const changed: Record<string, unknown> = {}
  for (const { slot, change } of changes)
    changed[slot.name] = slot.reduce(slotValue({ ...slots, ...changed }, slot), change)
  return changed
}

/** What one call sees and changes. `slots` gives the newest stored values. */
export function slotAccess(slots: () => Slots): { readonly access: SlotAccess; readonly changes: SlotChange[] } {
  const changes: SlotChange[] = []
  return {
    changes,
    access: {
      read: (slot) => slotValue({ ...slots(), ...reduceAll(slots(), changes) }, slot),
      change: (slot, change) => {
        changes.push({ slot: slot as unknown as Slot<unknown, unknown>, change })
      },
    },
  }
}
