// Schemas crafted to keep a validator busy, and harmless ones that look similar.

import { validatorFor } from '@oxbow/core/internal'
import { describe, expect, test } from 'vitest'
import { modernSchema } from './schema.ts'

const schema = (more: object) => modernSchema({ type: 'object', ...more })
const ref = (name: string) => ({ $ref: `#/$defs/${name}` })
const defs = (length: number, of: (next: object) => object) => ({
  $defs: Object.fromEntries(
    Array.from({ length }, (_, at) => [`a${at}`, at === length - 1 ? { type: 'string' } : of(ref(`a${at + 1}`))]),
  ),
  properties: { x: ref('a0') },
})

describe('Y12: a schema is refused', () => {
  test.each([
    ['whose references double at each step', defs(40, (next) => ({ allOf: [next, { not: next }] }))],
    ['whose references double with each part', defs(40, (next) => ({ properties: { l: next, r: next } }))],
    ['whose chain of references is too long for the stack', defs(3_000, (next) => ({ allOf: [next] }))],
    ['that refers to itself without end', { $defs: { a: { allOf: [ref('a')] } }, properties: { x: ref('a') } }],
    [
      'that refers to itself twice for the same part',
      {
        $defs: { a: { anyOf: [{ properties: { x: ref('a') } }, { properties: { x: ref('a') } }] } },
        properties: { x: ref('a') },
      },
    ],
    [
      'that does so through another one, and over a part that is not named',
      {
        $defs: {
          a: { properties: { y: ref('b') }, anyOf: [{ additionalProperties: ref('a') }] },
          b: { properties: { x: ref('b'), z: ref('a') } },
        },
        properties: { x: ref('a') },
      },
    ],
    [
      'whose reference does not point to a schema',
      { default: { pattern: '(a+)+$' }, properties: { x: { $ref: '#/default' } } },
    ],
    ['whose reference points to another document', { properties: { x: { $ref: 'https://elsewhere.example/s' } } }],
  ])('%s', (_, more) => {
    const before = performance.now()
    expect(() => schema(more)).toThrow(/refer/)
    expect(performance.now() - before).toBeLessThan(1_000)
  })
})

describe('Y12: a schema is used', () => {
  const json = {
    anyOf: [
      { type: ['string', 'number', 'boolean', 'null'] },
      { type: 'array', items: ref('json') },
      { type: 'object', additionalProperties: ref('json') },
    ],
  }
  const filter = {
    anyOf: [
      { type: 'object', properties: { field: { type: 'string' } }, required: ['field'], additionalProperties: false },
      { type: 'object', properties: { and: { type: 'array', items: ref('filter') } }, required: ['and'] },
      { type: 'object', properties: { or: { type: 'array', items: ref('filter') } }, required: ['or'] },
      { type: 'object', properties: { not: ref('filter') }, required: ['not'] },
    ],
  }

  test.each([
    ['any JSON', { $defs: { json }, properties: { it: ref('json') } }, { it: [{ a: [1] }] }],
    ['a tree', { properties: { left: { $ref: '#' }, right: { $ref: '#' } } }, { left: { right: {} } }],
    ['a filter', { $defs: { filter }, properties: { it: ref('filter') } }, { it: { or: [{ not: { field: 'a' } }] } }],
    [
      'of draft-04',
      { definitions: { a: { type: 'string' } }, properties: { it: { $ref: '#/definitions/a' } } },
      { it: 'a' },
    ],
  ])('that refers to itself once for each part: %s', async (_, more, value) => {
    const validate = await validatorFor(schema(more), 'it')
    expect(validate(value)).toBe(true)
    expect(validate({ it: Symbol.iterator, left: 1 })).toBe(false)
  })

  test('without uniqueItems and without the effect of a field named __proto__', () => {
    const given = JSON.parse('{"properties":{"l":{"uniqueItems":true,"__proto__":{"pattern":"(a+)+$"}}}}') as object
    const { properties } = schema(given) as { properties: { l: { pattern?: string } } }
    expect(properties.l).toEqual({})
    expect(properties.l.pattern).toBeUndefined()
  })
})
