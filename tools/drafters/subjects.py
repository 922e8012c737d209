"""Words that JSON tasks are made of."""

from __future__ import annotations

from typing import NamedTuple


class Field(NamedTuple):
    """A key's type and values that examples show."""

    kind: str
    values: tuple[str, ...]


ANY_VALUE = ('"unknown"',)
SUBJECTS = (
    "a cat", "a dog", "a city", "a book", "a film", "a person", "a recipe", "a planet", "a car",
    "a country", "an order of a shop", "a weather report", "a football match", "a flight",
    "a hotel", "a song", "a painting", "a river", "a mountain", "a company", "a job offer",
    "a product", "a bug report", "a meeting", "a calendar entry", "a contact", "an invoice",
    "a bird", "a tree", "a flower", "a computer", "a phone", "a train journey", "a museum",
    "a university course", "a student", "a doctor's appointment", "a shopping list", "a poem",
    "a news article", "a chess opening", "a programming language", "a web page", "a language",
    "Paris", "London", "Tokyo", "Mars", "the moon", "the sun", "Albert Einstein", "Marie Curie",
    "the Eiffel Tower", "coffee", "a bicycle", "a horse", "an elephant", "a restaurant", "a user",
    "a user profile", "an employee", "a customer", "a game character", "a wizard", "a spaceship",
    "a birthday party", "a library", "a school", "a hospital", "a garden", "a house", "a robot",
    "Python", "a database table", "a server's configuration", "a web shop's cart", "a ticket",
)  # fmt: skip
FIELDS = {
    "name": Field("string", ('"Luna"', '"Berlin"', '"Alice Johnson"', '"Apollo"', '"Max"')),
    "title": Field("string", ('"The Long Road"', '"A Quiet Day"', '"Report"')),
    "age": Field("integer", ("3", "27", "64")),
    "price": Field("number", ("12.5", "199.99", "3.0")),
    "city": Field("string", ('"Paris"', '"Tokyo"', '"Nairobi"')),
    "country": Field("string", ('"France"', '"Japan"', '"Kenya"')),
    "color": Field("string", ('"black"', '"red"', '"blue"')),
    "year": Field("integer", ("1999", "2014", "1875")),
    "available": Field("boolean", ("true", "false")),
    "active": Field("boolean", ("true", "false")),
    "tags": Field("array", ('["small","quiet"]', '["new","fast","cheap"]', '["history"]')),
    "description": Field(
        "string",
        (
            '"A friendly animal that likes to sleep in the sun."',
            '"A large place with many old houses and a river."',
            '"It was written in three months and sold very well."',
        ),
    ),
    "summary": Field("string", ('"A short text about a long day."',)),
    "rating": Field("number", ("4.5", "8", "2")),
    "author": Field("string", ('"Maria Lopez"', '"John Smith"')),
    "size": Field("string", ('"small"', '"large"', '"medium"')),
    "type": Field("string", ('"animal"', '"place"', '"thing"')),
    "breed": Field("string", ('"Siamese"', '"Labrador"')),
    "weight": Field("number", ("4.2", "70", "1200")),
    "population": Field("integer", ("2100000", "85000")),
    "id": Field("integer", ("1", "42", "1007")),
    "items": Field(
        "array",
        (
            '[{"name":"apple","count":3},{"name":"bread","count":1}]',
            '[{"name":"pen","count":10}]',
        ),
    ),
    "address": Field("object", ('{"street":"Main Street 5","city":"Boston"}',)),
    "email": Field("string", ('"alice@example.com"',)),
    "phone": Field("string", ('"555-0134"',)),
    "date": Field("string", ('"2024-05-01"', '"1987-11-23"')),
    "language": Field("string", ('"English"', '"French"')),
    "ingredients": Field("array", ('["flour","sugar","eggs"]',)),
    "steps": Field("array", ('["Mix it.","Bake it."]',)),
}
OTHER_KEYS = {
    "string": (
        "first_name", "last_name", "street", "state", "zip_code", "company", "job", "occupation",
        "department", "category", "genre", "status", "message", "reason", "sentiment", "label",
        "topic", "question", "answer", "comment", "notes", "text", "content", "url", "website",
        "image", "time", "start", "end", "from", "to", "platform", "product", "brand", "model",
        "material", "currency", "unit", "location", "region", "capital", "continent", "climate",
        "customer", "seller", "sender", "username", "role", "gender", "species", "habitat", "diet",
        "birthday", "created_at", "deadline", "priority", "result", "winner", "venue", "director",
        "publisher", "format", "version", "code", "symbol", "weather", "mood", "style", "cause",
        "difficulty", "purpose", "origin", "place", "event", "subject", "instructions", "fullName",
        "firstName", "postalCode", "phoneNumber", "startDate", "eventName", "favorite_food",
    ),
    "integer": (
        "count", "quantity", "number", "pages", "duration", "calories", "servings", "capacity",
        "floor", "stock", "height", "width", "distance", "temperature", "views", "likes",
        "minutes", "day", "month", "seats", "founded", "userId", "published_year",
    ),
    "number": ("cost", "total", "amount", "salary", "discount", "tax", "latitude", "score"),
    "boolean": ("is_active", "completed", "verified", "enabled", "in_stock", "isAvailable"),
    "array": (
        "keywords", "features", "skills", "hobbies", "genres", "authors", "actors", "options",
        "colors", "languages", "friends", "tasks", "people", "topics", "examples", "benefits",
    ),
    "object": ("dimensions", "owner", "details", "settings", "contact", "metadata"),
}  # fmt: skip
"""Keys of schemas that a request does not show, by their kind."""
FIRST_NAMES = (
    "Alice", "Bob", "Maria", "John", "Sarah", "David", "Emma", "Liam", "Olivia", "Noah", "Ava",
    "James", "Sofia", "Ahmed", "Yuki", "Carlos", "Anna", "Peter", "Grace", "Tom", "Lucy", "Mark",
)  # fmt: skip
LAST_NAMES = (
    "Johnson", "Smith", "Lopez", "Brown", "Miller", "Davis", "Wilson", "Taylor", "Lee", "Clark",
    "Walker", "Young", "King", "Wright", "Hill", "Green", "Baker", "Adams", "Nelson", "Carter",
)  # fmt: skip
CITIES = (
    "Berlin", "Paris", "London", "Tokyo", "Boston", "Madrid", "Rome", "Nairobi", "Oslo", "Cairo",
    "Lima", "Sydney", "Toronto", "Chicago", "Mumbai", "Seoul", "Lisbon", "Vienna", "Dublin",
)  # fmt: skip
GOODS = (
    "apples", "loaves of bread", "eggs", "books", "chairs", "lamps", "shirts", "bottles of water",
    "pens", "tomatoes", "cups", "phones", "headphones", "shoes", "tickets", "pizzas", "cakes",
)  # fmt: skip
LISTS = (
    "fruits", "vegetables", "animals", "European cities", "African countries",
    "programming languages", "famous scientists", "colors", "planets", "musical instruments",
    "sports", "books",
    "ways to save money", "tips for better sleep", "healthy breakfasts", "hobbies", "jobs",
    "things to do in Paris", "English verbs", "kinds of weather", "famous paintings", "inventions",
)  # fmt: skip
OPINIONS = (
    "The {good} arrived late and two were broken.",
    "I love these {good}, they are exactly what I wanted.",
    "The food was cold and the waiter was rude.",
    "Our hotel in {city} was clean, quiet and cheap.",
    "It works, but the manual is hard to read.",
    "The film was far too long, yet the music was wonderful.",
    "Best day of my life, thank you {city}!",
    "I asked for {good} and got nothing for three weeks.",
)
JOBS = ("nurse", "teacher", "engineer", "cook", "driver", "doctor", "painter", "farmer")
MONTHS = ("January", "March", "May", "June", "August", "October", "December")
PASSAGES = (
    ("{first} {last} is {age} years old and lives in {city}.", ("name", "age", "city")),
    ("My name is {first}. I left {city} for {other} when I was {age}.", ("name", "from", "to")),
    (
        "Order: {count} {goods} and one box of {more} for {first} {last}, {price} dollars in all.",
        ("customer", "items", "total"),
    ),
    (
        "Please send {count} {goods} to {first} {last}, {city}, by Friday.",
        ("product", "quantity", "name", "city"),
    ),
    (
        "The train from {city} to {other} leaves at {hour}:{minute} from platform {count}.",
        ("from", "to", "time", "platform"),
    ),
    (
        "{first} {last} works as a {job} in {city} and can be reached at {lower}@example.com.",
        ("name", "job", "email", "city"),
    ),
    ("On {day} {month} {year} {first} met {friend} in {city}.", ("date", "people", "place")),
    (
        "It will be {degrees} degrees and {sky} in {city} tomorrow.",
        ("city", "temperature", "weather"),
    ),
    (
        "I would like 3 {goods}, {count} {more} and a bag for {first}.",
        ("items", "name"),
    ),
)
