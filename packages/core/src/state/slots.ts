// A capability's state of a session, apart from the conversation: todos, a plan, files read.

import { anything, checkFields, checkObject, flag } from '../checks/fields.ts'
import { OxbowError } from '../errors.ts'

/**
 * A typed place in the state of a session. Its value is JSON, kept in the journal by `state.changed` and so on every
 * replica; `reduce` is the only way in which it changes, pure, and run against the newest value.
 */
export interface Slot<Value, Change = Value> {
  readonly name: string
  readonly initial: Value
  readonly reduce: (value: Value, change: Change) => Value
  /**
   * When a session that works for another one has ended, that one gets the value, too; so do all above. A reviewer
   * finds them in `below`. Default: no.
   */
  readonly handsUp?: boolean
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
 * Defines a slot, once for all its uses: the name belongs to the slot that an agent uses first, and calls that use
 * another one of that name fail with `slot_taken`.
 *
 * @example
 * const todos = slot({ name: 'todos', initial: [] as string[], reduce: (list, added: string) => [...list, added] })
 * // in a tool's run(): context.state.change(todos, 'write tests')
 * @throws OxbowError `slot_invalid`
 */
export function slot<Value, Change>(definition: Slot<Value, Change>): Slot<Value, Change> {
  checkObject(
    definition,
    "{ name: 'todos', initial: [], reduce }",
    (what) => new OxbowError('slot_invalid', `slot() ${what}`),
  )
  const { name, reduce } = definition
  if (!NAME.test(name))
    throw new OxbowError('slot_invalid', `A slot's name is up to 64 of a-z 0-9 -, not ${JSON.stringify(name)}.`)
  checkFields(
    definition,
    { name: anything, initial: anything, reduce: anything, handsUp: flag },
    (what) => new OxbowError('slot_invalid', `slot ${name}: ${what}`),
  )
  if (typeof reduce !== 'function') throw new OxbowError('slot_invalid', `slot ${name}: reduce must be a function`)
  return definition
}

export type Slots = Readonly<Record<string, unknown>>

/**
 * The value of a slot in a session; `initial` where nothing was ever stored.
 *
 * @example const todos = slotValue((await session.state()).slots, todoSlot)
 */
export const slotValue = <Value>(slots: Slots, { name, initial }: Pick<Slot<Value>, 'name' | 'initial'>): Value =>
  Object.hasOwn(slots, name) ? (slots[name] as Value) : initial

/** The slots that agents have used, by name. Values of two that share a name would be taken for each other's. */
const used = new WeakMap<object, Map<string, unknown>>()

function assertOwn(agent: object, slot: Pick<Slot<unknown>, 'name'>): void {
  const known = used.get(agent) ?? new Map<string, unknown>()
  used.set(agent, known)
  const first = known.get(slot.name) ?? slot
  known.set(slot.name, first)
  if (first !== slot)
    throw new OxbowError(
      'slot_taken',
      `Another slot of this agent is named ${slot.name}. Rename one; a slot is defined once, outside of the functions that use it.`,
    )
}

/** The slots that `changes` touch, with their new values. */
export function reduceAll(slots: Slots, changes: readonly SlotChange[]): Slots {
  const changed: Record<string, unknown> = {}
  for (const { slot, change } of changes)
    changed[slot.name] = slot.reduce(slotValue({ ...slots, ...changed }, slot), change)
  return changed
}

/** The slot values that one call sees and changes. `slots` returns the newest stored values. */
export function slotAccess(
  agent: object,
  slots: () => Slots,
): { readonly access: SlotAccess; readonly changes: SlotChange[] } {
  const changes: SlotChange[] = []
  return {
    changes,
    access: {
      read: (slot) => {
        assertOwn(agent, slot)
        return slotValue({ ...slots(), ...reduceAll(slots(), changes) }, slot)
      },
      change: (slot, change) => {
        assertOwn(agent, slot)
        changes.push({ slot: slot as unknown as Slot<unknown, unknown>, change })
      },
    },
  }
}
