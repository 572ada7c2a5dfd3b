import TypeBox from 'typebox';
import { expect, test } from 'vitest';
import { Type } from './type.ts';

type Makers = typeof Type;

/** One schema of each kind that the API and the commands use. */
function schemas(make: Makers): object[] {
  const person = make.Object({ name: make.String(), age: make.Optional(make.Integer({ minimum: 0 })) }, { title: 'P' });
  return [
    person,
    make.Object({}),
    make.Object({ age: make.Optional(make.Number()) }, { additionalProperties: false }),
    make.Interface([person, make.Object({ isPaid: make.Boolean() })], { note: make.Null() }),
    make.Array(person, { maxItems: 3, description: 'Few' }),
    make.Record(make.String(), make.Unknown()),
    make.Record(make.String(), person),
    make.Unsafe<Date>(make.String({ format: 'date-time' })),
    make.Union([person, make.Null()], { description: 'Or nothing' }),
    make.Intersect([person, make.Object({ at: make.String() })]),
    make.Enum(['a', 'b'], { type: 'string' }),
    make.Enum(['a', 'b']),
    make.Literal('a', { title: 'A' }),
    make.Literal(1),
    make.Unknown({ description: 'Anything' }),
    make.Boolean({ default: true }),
  ];
}

test('each schema is the text that TypeBox would make', () => {
  expect(schemas(Type).map((schema) => JSON.stringify(schema))).toEqual(
    schemas(TypeBox as unknown as Makers).map((schema) => JSON.stringify(schema)),
  );
});

test('an optional schema is as before where it is used by itself', () => {
  const text = Type.String();
  Type.Optional(text);
  expect(Type.Object({ text })).toMatchObject({ required: ['text'] });
});

test('an interface that has a property twice is refused', () => {
  expect(() => Type.Interface([Type.Object({ a: Type.String() })], { a: Type.Null() })).toThrow('declared twice');
});
