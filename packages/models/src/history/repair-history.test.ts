import type { Block, Message, ResultBlock } from '@oxbow/core'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { repairHistory } from '../index.ts'
import { assistant, call, histories, result, text, tool, user } from './histories.fixture.ts'

const kinds = (messages: Message[]) => repairHistory(messages).repairs.map((repair) => repair.kind)
const blocks = (messages: Message[]) => repairHistory(messages).messages.map((m) => [m.role, ...m.blocks])

test('a valid history is returned as the same array', () => {
  const history = [
    user(text('hi')),
    user(text('and')),
    assistant({ type: 'thinking', text: '', signature: 's' }, call('a'), call('b')),
    tool(result('b')),
    tool(result('a')),
    assistant(text('done')),
  ]
  const repaired = repairHistory(history)
  expect(repaired.messages).toBe(history)
  expect(repaired.repairs).toEqual([])
})

describe('emptiness', () => {
  test('an empty or blank assistant message is dropped, so that it does not break the session', () => {
    const [first, last] = [user(text('hi')), user(text('again'))]
    const history = [first, assistant(), assistant(text('')), assistant(text(' \n')), last]
    expect(repairHistory(history).messages).toEqual([first, last])
    expect(kinds(history)).toEqual(['empty_message', 'empty_block', 'empty_message', 'empty_block', 'empty_message'])
  })

  test('an empty block is dropped and the rest of its message kept', () => {
    expect(blocks([user(text('hi')), assistant(text(''), text('yes'))])).toEqual([
      ['user', text('hi')],
      ['assistant', text('yes')],
    ])
  })

  test('thinking stays when it has text, a signature or sealed reasoning', () => {
    const thinking: Block[] = [
      { type: 'thinking', text: 'hm' },
      { type: 'thinking', text: '', signature: 's' },
      { type: 'thinking', text: '', redacted: 'r' },
      { type: 'thinking', text: '' },
    ]
    expect(blocks([assistant(...thinking)])).toEqual([['assistant', ...thinking.slice(0, 3)]])
  })

  test('an empty aborted message does not shield a call without a result', () => {
    const history = [user(text('hi')), assistant(call('a')), assistant(text('')), user(text('go on'))]
    expect(repairHistory(history).messages.map((m) => m.role)).toEqual(['user', 'assistant', 'tool', 'user'])
  })
})

describe('pairing', () => {
  test('a call without a result gets one that says its outcome is unknown', () => {
    const [, , answered] = repairHistory([
      user(text('hi')),
      assistant(call('a'), call('b')),
      tool(result('a')),
    ]).messages
    expect(answered).toMatchObject({ role: 'tool', blocks: [result('a'), { callId: 'b', status: 'unknown' }] })
  })

  test('a result without a call is dropped and counted', () => {
    expect(blocks([user(text('hi')), tool(result('x')), assistant(text('yes'))])).toHaveLength(2)
    expect(kinds([user(text('hi')), tool(result('x'))])).toEqual(['orphan_result'])
  })

  test('the first of two results wins', () => {
    const history = [user(text('hi')), assistant(call('a')), tool(result('a', 'first'), result('a', 'second'))]
    expect(blocks(history)[2]).toEqual(['tool', result('a', 'first')])
    expect(kinds(history)).toEqual(['duplicate_result'])
  })

  test('a result after a steering message is moved to its call', () => {
    const steer = user(text('faster'))
    const history = [user(text('hi')), assistant(call('a')), steer, tool(result('a')), assistant(text('ok'))]
    expect(blocks(history).slice(1)).toEqual([
      ['assistant', call('a')],
      ['tool', result('a')],
      ['user', text('faster')],
      ['assistant', text('ok')],
    ])
    expect(repairHistory(history).messages[3]).toBe(steer)
    expect(kinds(history)).toEqual(['moved_result'])
  })

  test('results of two messages in one are moved to their own calls', () => {
    expect(blocks([assistant(call('a')), assistant(call('b')), tool(result('a'), result('b'))])).toEqual([
      ['assistant', call('a')],
      ['tool', result('a')],
      ['assistant', call('b')],
      ['tool', result('b')],
    ])
  })

  test('an id that was used before is made unique together with its result', () => {
    const history = [assistant(call('a')), tool(result('a')), assistant(call('a')), tool(result('a', 'second'))]
    expect(blocks(history).slice(2)).toEqual([
      ['assistant', call('a~2')],
      ['tool', result('a~2', 'second')],
    ])
  })

  test('a repeated id inside one message pairs in order', () => {
    expect(blocks([assistant(call('a'), call('a')), tool(result('a', 'one'), result('a', 'two'))])).toEqual([
      ['assistant', call('a'), call('a~2')],
      ['tool', result('a', 'one'), result('a~2', 'two')],
    ])
  })

  test('an empty id is replaced', () => {
    expect(blocks([assistant(call('')), tool(result(''))])).toEqual([
      ['assistant', call('call~2')],
      ['tool', result('call~2')],
    ])
  })

  test('text in a tool message is kept as a message of the user', () => {
    expect(blocks([assistant(call('a')), tool(result('a'), text('note'))])).toEqual([
      ['assistant', call('a')],
      ['tool', result('a')],
      ['user', text('note')],
    ])
  })
})

test('with `userFirst` a history that starts with the assistant gets an opening message', () => {
  const answer = assistant(text('as I said'))
  const { messages, repairs } = repairHistory([answer], { userFirst: true })
  expect(messages.map((m) => m.role)).toEqual(['user', 'assistant'])
  expect(repairs).toEqual([{ kind: 'user_first', messageId: answer.id }])
  expect(repairHistory(messages, { userFirst: true }).messages).toBe(messages)
})

test('checking a valid history of thousands of messages costs a fraction of serialising it', () => {
  const history = Array.from({ length: 2_500 }, (_, i) => [
    user(text('a question')),
    assistant(text('let me see'), call(`c${i}`)),
    tool(result(`c${i}`)),
    assistant(text('an answer')),
  ]).flat()
  const fastest = (run: () => unknown) =>
    Math.min(
      ...Array.from({ length: 20 }, () => {
        const start = performance.now()
        run()
        return performance.now() - start
      }),
    )
  expect(fastest(() => repairHistory(history))).toBeLessThan(fastest(() => JSON.stringify(history)) / 2)
})

describe('any history', () => {
  const check = (property: (history: Message[]) => void) =>
    fc.assert(fc.property(histories, property), { numRuns: 2_000 })

  test('is not modified, and is repaired without throwing', () => {
    check((history) => {
      const { messages, repairs } = repairHistory(history)
      expect(messages === history).toBe(repairs.length === 0)
    })
  })

  test('does not need a second repair', () => {
    check((history) => {
      const once = repairHistory(history, { userFirst: true }).messages
      expect(repairHistory(once, { userFirst: true })).toEqual({ messages: once, repairs: [] })
    })
  })

  test('has one result for each call, directly after it, under a unique id', () => {
    check((history) => {
      const { messages } = repairHistory(history)
      const ids = messages.flatMap((m) => m.blocks.flatMap((b) => (b.type === 'call' ? [b.callId] : [])))
      expect(new Set(ids).size).toBe(ids.length)
      let open: string[] = []
      for (const { role, blocks: content } of messages) {
        if (role !== 'tool') {
          expect(open).toEqual([])
          open = content.flatMap((b) => (b.type === 'call' ? [b.callId] : []))
        } else {
          for (const block of content) {
            expect(block.type === 'result' && open.includes(block.callId)).toBe(true)
            open = open.filter((callId) => callId !== (block as ResultBlock).callId)
          }
        }
      }
      expect(open).toEqual([])
    })
  })

  test('keeps all text that is not blank', () => {
    const spoken = (messages: readonly Message[]) =>
      messages
        .flatMap((m) => m.blocks.flatMap((b) => (b.type === 'text' && b.text.trim() !== '' ? [b.text] : [])))
        .sort()
    check((history) => {
      expect(spoken(repairHistory(history).messages)).toEqual(spoken(history))
    })
  })

  test('does not contain empty blocks or messages', () => {
    check((history) => {
      for (const { blocks: content } of repairHistory(history).messages) {
        expect(content.length).toBeGreaterThan(0)
        for (const block of content) if (block.type === 'text') expect(block.text.trim()).not.toBe('')
      }
    })
  })
})
